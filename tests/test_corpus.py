"""Corpora from arrays and files: right, or refused in one clear line."""

import pickle
import zipfile

import numpy as np
import pytest

from popdyn.corpus import Corpus

FEATURES = [[0.5, -0.5, 0.1], [0.9, -1.0, 0.2]]
LABELS = [[-1, 1, 1], [1, 1, -1]]
THRESHOLDS = [0.25, 1.0]


def corpus(**changed):
    arrays = {"features": FEATURES, "labels": LABELS, "thresholds": THRESHOLDS} | changed
    return Corpus.from_arrays(**arrays)


def test_examples_are_sorted_by_feature_and_keep_their_labels():
    assert corpus().features.tolist() == [[-0.5, 0.1, 0.5], [-1.0, 0.2, 0.9]]
    assert corpus().labels.tolist() == [[1, 1, -1], [1, -1, 1]]
    assert (corpus().n_tasks, corpus().n_examples, corpus().half_width) == (2, 3, 1.0)


def test_labels_of_zero_and_one_are_the_same_labels():
    for labels in (np.array(LABELS) > 0, (np.array(LABELS) > 0).astype(float)):
        assert corpus(labels=labels) == corpus()


def test_labels_may_contradict_the_threshold():
    assert corpus(thresholds=[-1.0, -1.0]).labels.tolist() == corpus().labels.tolist()


def test_one_example_and_equal_labels_are_a_corpus():
    one = Corpus.from_arrays([[0.0]], [[1]], [0.0])
    assert (one.n_tasks, one.n_examples) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        np.array(FEATURES, dtype=">f8"),
        np.array(FEATURES, dtype=np.longdouble),
        np.asfortranarray(FEATURES),
        np.repeat(np.array(FEATURES), 2, axis=1)[:, ::2],
    ],
    ids=["big-endian", "long double", "column order", "strided"],
)
def test_any_real_array_gives_the_same_corpus(given):
    before = given.copy()
    given.flags.writeable = False
    assert corpus(features=given) == corpus()
    assert corpus(features=given).features.dtype == np.dtype("=f8")
    assert np.array_equal(given, before)


def test_integer_features_are_numbers():
    whole = Corpus.from_arrays([[2, -2]], np.array([[0, 1]], dtype=np.uint8), [1], half_width=2)
    assert whole.features.tolist() == [[-2.0, 2.0]]
    assert whole.labels.tolist() == [[1, -1]]


def test_the_corpus_has_copies_that_nobody_can_write():
    features = np.array([[0.0, 0.5]])
    mine = Corpus.from_arrays(features, [[1, 1]], [0.0])
    features[0, 0] = 0.25
    assert mine.features.tolist() == [[0.0, 0.5]]
    for array in (mine.features, mine.labels, mine.thresholds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        mine.half_width = 2.0


def test_corpora_are_compared_by_value():
    assert corpus() == corpus(
        features=np.array(FEATURES)[:, ::-1], labels=np.array(LABELS)[:, ::-1]
    )
    assert hash(corpus()) == hash(corpus())
    assert Corpus.from_arrays([[-0.0]], [[1]], [0.0]) == Corpus.from_arrays([[0.0]], [[1]], [0.0])
    assert hash(Corpus.from_arrays([[-0.0]], [[1]], [0.0])) == hash(
        Corpus.from_arrays([[0.0]], [[1]], [0.0])
    )
    assert corpus() != corpus(half_width=2.0)
    assert corpus() != corpus(thresholds=[0.25, 0.5])
    assert corpus() != "corpus"


def test_the_order_of_tied_examples_does_not_matter():
    assert Corpus.from_arrays([[0.5, 0.5]], [[1, -1]], [0.0]) == Corpus.from_arrays(
        [[0.5, 0.5]], [[-1, 1]], [0.0]
    )


@pytest.mark.parametrize("presorted", [False, True])
@pytest.mark.parametrize("levels", [2, 5, 10**6])
def test_examples_stand_in_the_order_of_feature_and_label(levels, presorted):
    rng = np.random.default_rng(levels)
    features = rng.integers(-levels, levels + 1, (40, 30)) / levels
    labels = rng.choice([-1, 1], (40, 30))
    if presorted:
        features = np.sort(features, axis=1)
    mine = Corpus.from_arrays(features, labels, np.zeros(40))
    for i in range(40):
        examples = sorted(zip(features[i].tolist(), labels[i].tolist(), strict=True))
        assert list(zip(mine.features[i], mine.labels[i], strict=True)) == examples


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": [], "labels": []}, r"features must have the shape \(n_tasks, n_examples\)"),
        (
            {"features": np.empty((0, 3)), "labels": np.empty((0, 3)), "thresholds": []},
            r"at least one task and one example, got features of shape \(0, 3\)",
        ),
        (
            {"features": np.empty((2, 0)), "labels": np.empty((2, 0))},
            r"at least one task and one example, got features of shape \(2, 0\)",
        ),
        ({"features": [[0.5, np.nan, 0.1]] * 2}, r"features must be finite.* got nan at \[0, 1\]"),
        ({"features": [[0.5, 0.0, np.inf]] * 2}, r"features must be finite.* got inf at \[0, 2\]"),
        ({"features": [[0.5, 0.0, -1.1]] * 2}, r"in \[-1.0, 1.0\], got -1.1 at \[0, 2\]"),
        ({"features": [[0.5, 0.1]] * 2}, r"got \(2, 2\), \(2, 3\) and \(2,\)"),
        ({"features": [[0.5, 0.1], [0.5]]}, "features must be an array of real numbers with rows"),
        ({"features": [["a", "b", "c"]] * 2}, "features must be an array of real numbers"),
        ({"features": [[1j, 0, 0]] * 2}, "features must be an array of real numbers"),
        ({"labels": [[0, 1, -1]] * 2}, r"0 and 1 throughout, got -1 at \[0, 2\]"),
        ({"labels": [[2, 1, -1]] * 2}, r"labels must be -1 and \+1, .* got 2 at \[0, 0\]"),
        ({"labels": [[np.nan, 1, 1]] * 2}, r"labels must be -1 and \+1, .* got nan at \[0, 0\]"),
        ({"thresholds": [0.0]}, r"got \(2, 3\), \(2, 3\) and \(1,\)"),
        ({"thresholds": 0.0}, r"thresholds must have the shape \(n_tasks,\), got \(\)"),
        ({"thresholds": [0.0, 1.5]}, r"thresholds must be finite and in .* got 1.5 at \[1\]"),
        ({"half_width": 0.0}, "half_width must be one positive finite number"),
        ({"half_width": np.nan}, "half_width must be one positive finite number"),
    ],
)
def test_a_bad_corpus_is_refused_in_one_line(changed, message):
    with pytest.raises(ValueError, match=message) as refusal:
        corpus(**changed)
    assert "\n" not in str(refusal.value)


def test_a_corpus_survives_pickling_read_only():
    twin = pickle.loads(pickle.dumps(corpus()))
    assert twin == corpus()
    assert not twin.features.flags.writeable


def test_a_file_holds_the_corpus_without_pickles(tmp_path):
    mine = corpus(half_width=1.5)
    mine.save(tmp_path / "corpus.npz")
    assert Corpus.load(tmp_path / "corpus.npz") == mine
    with np.load(tmp_path / "corpus.npz", allow_pickle=False) as archive:
        assert {archive[name].dtype.kind for name in archive} == {"f", "i", "U"}


def test_saving_replaces_the_old_file_and_leaves_no_other(tmp_path):
    corpus().save(tmp_path / "corpus.npz")
    corpus(half_width=2.0).save(str(tmp_path / "corpus.npz"))
    assert Corpus.load(str(tmp_path / "corpus.npz")).half_width == 2.0
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.npz"]


def test_saving_twice_writes_the_same_bytes(tmp_path):
    for name in ("first", "second"):
        corpus().save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    corpus().save(tmp_path / "corpus.npz")

    def full(*arguments, **keywords):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        corpus(half_width=2.0).save(tmp_path / "corpus.npz")
    assert Corpus.load(tmp_path / "corpus.npz") == corpus()
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.npz"]


def _write_truncated(path):
    corpus().save(path)
    path.write_bytes(path.read_bytes()[:-200])


def _write_flipped(path):
    corpus().save(path)
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(0.9).tobytes())] ^= 1
    path.write_bytes(content)


def _write_pickle(path):
    np.savez(path, format=np.array([None], dtype=object))


def _write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format.npy", "no array")


@pytest.mark.parametrize(
    "write",
    [
        _write_truncated,
        _write_flipped,
        _write_pickle,
        _write_zip,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("feature,label"),
        lambda path: np.savez(path, features=np.zeros((1, 1))),
        lambda path: np.savez(path, format=np.array("another 3")),
        lambda path: path.write_bytes(b"\x93NUMPY"),
    ],
    ids=["truncated", "bit flip", "pickle", "zip", "empty", "text", "no format", "foreign", "npy"],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(tmp_path, write):
    write(tmp_path / "corpus.npz")
    with pytest.raises(ValueError, match=r"is not a whole 'popdyn corpus 1' file") as refusal:
        Corpus.load(tmp_path / "corpus.npz")
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Corpus.load(tmp_path / "none.npz")


def test_a_file_of_another_kind_is_never_said_to_be_loadable_unsafely(tmp_path):
    path = tmp_path / "notes.npz"
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="it is no archive, or cut off") as refusal:
        Corpus.load(path)
    assert "pickle" not in str(refusal.value)
