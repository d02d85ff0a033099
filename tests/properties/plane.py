"""The whole plane of heads, as strategies; examples are the same in every run."""

from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from popdyn import Head

held_to = partial(
    settings,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def powers(low, high):
    """Positive numbers, even in their logarithm."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


def signed(numbers):
    return st.tuples(st.sampled_from([-1.0, 1.0]), numbers).map(lambda pair: pair[0] * pair[1])


half_widths = st.one_of(st.sampled_from([0.5, 1.0, 2.0]), powers(-2, 2))
sizes = st.one_of(st.just(0.0), signed(powers(-6, 3)), st.floats(-4.0, 4.0))


def heads(largest=9, widths=half_widths):
    """Heads in each coordinate; `|mu| l` up to ten to the `largest`, and 0, on and off the tube."""
    scales = powers(-9, largest)
    both = st.one_of(st.just(0.0), signed(scales), st.floats(-3.0, 3.0))
    return st.one_of(
        st.builds(lambda x, mu, l: Head.from_scores(x, mu / l, l), sizes, both, widths),
        st.builds(lambda x, mu, l: Head.from_scores(x * mu, mu / l, l), sizes, both, widths),
        st.builds(lambda x, mu, l: Head.from_excess(x, mu / l, l), sizes, both, widths),
        st.builds(
            lambda c, mu, l: Head.from_tube(c, mu / l, l), st.floats(-3.0, 4.0), scales, widths
        ),
        st.builds(
            lambda k, mu, l: Head.from_ratio(k * l, mu / l, l), st.floats(-2.0, 3.0), scales, widths
        ),
    )
