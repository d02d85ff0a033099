"""A notebook in JupyterLab and a real browser: a slider is moved, and its picture changes."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "logarithmic_tube.ipynb"
KNOB = "interact("
PATIENCE = 120  # seconds for each thing that the page is to show; compilation is the slowest
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --window-size=1400,2400 "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
HANDLE = ".widget-slider .noUi-handle"
IMAGE = ".jp-OutputArea img"
PICTURE = f".jp-OutputArea {IMAGE}"  # the slider has an output area of its own inside the cell's
# Cells outside the window are left out of the page unless this says otherwise.
SETTINGS = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
RUN_ALL = """
const done = arguments[arguments.length - 1];
const app = window.jupyterapp;
(async () => {
    await app.restored;
    const panel = app.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    return await app.commands.execute("notebook:run-all-cells");
})().then(done, error => done(String(error)));
"""
OPENED = "return window.jupyterapp && window.jupyterapp.shell.currentWidget?.context?.path"

# Libraries of the browser and of the server warn of one another.
pytestmark = pytest.mark.filterwarnings("default")


def what_is_missing():
    programs = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return programs + [name for name in ("selenium", "jupyterlab") if find_spec(name) is None]


@pytest.fixture
def to_the_first_knob(tmp_path):
    """A folder with the notebook to its first slider and the same picture as a plain call."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    knob = next(i for i, cell in enumerate(notebook.cells) if KNOB in cell.source)
    notebook.cells = notebook.cells[: knob + 2]
    folder = tmp_path / "notebooks"
    folder.mkdir()
    nbformat.write(notebook, folder / NOTEBOOK.name)
    return folder


@pytest.fixture
def lab(to_the_first_knob, tmp_path):
    """Address of a JupyterLab that serves the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "home"
    (home / "labconfig").mkdir(parents=True)
    (home / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.ip=127.0.0.1", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={to_the_first_knob}", "--expose-app-in-browser"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | dict.fromkeys(names, str(home))
        )
    try:
        wait_for_server(server, port, tmp_path / "log")
        yield f"http://127.0.0.1:{port}/lab/tree/{NOTEBOOK.name}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def wait_for_server(server, port, log):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture
def browser(tmp_path):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def tools():
    missing = what_is_missing()
    if missing and os.environ.get("CI"):
        pytest.fail(f"in CI the notebooks are tried in a browser, which needs {', '.join(missing)}")
    if missing:
        pytest.skip(f"trying notebooks in a browser needs {', '.join(missing)}")


def test_a_slider_moves_and_its_picture_changes(tools, lab, browser):
    from selenium.common.exceptions import (
        ElementNotInteractableException,
        StaleElementReferenceException,
    )
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser, PATIENCE, poll_frequency=0.1)

    def read(selector, attribute):
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e[arguments[1]])"
        return browser.execute_script(script, selector, attribute)

    def sources(selector):
        return read(selector, "src")

    browser.set_script_timeout(PATIENCE)
    browser.get(lab)
    wait.until(lambda _: browser.execute_script(OPENED) == NOTEBOOK.name)
    assert browser.execute_async_script(RUN_ALL) is True
    wait.until(lambda _: sources(PICTURE))
    (before,) = sources(PICTURE)
    wait.until(lambda _: sources(IMAGE) == [before, before])

    def pushed(_):
        browser.find_element(By.CSS_SELECTOR, HANDLE).send_keys(Keys.ARROW_RIGHT)
        return True

    # The page is laid out anew when a picture comes, and for a moment its slider takes no key.
    moving = (ElementNotInteractableException, StaleElementReferenceException)
    WebDriverWait(browser, PATIENCE, ignored_exceptions=moving).until(pushed)
    wait.until(lambda _: sources(PICTURE) and sources(PICTURE) != [before])
    (after,) = sources(PICTURE)
    assert after.startswith("data:image/png")
    assert sources(IMAGE) == [after, before]  # the plain call beneath shows what it began with
