import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.normal import (
    cdf,
    density,
    log_cdf,
    log_density,
    mills_drop,
    mills_ratio,
    quantile,
    quantile_from_log,
)
from tests import exact

PLACES = [-37.0, -20.0, -8.5, -3.001, -3.0, -2.9, -1.0, -1e-9, 0.0, 1e-9, 0.7, 2.5, 3.0, 3.2, 9.0, 36.0]


@pytest.mark.parametrize("x", PLACES)
def test_every_function_agrees_with_mpmath_to_fifteen_digits(x: float) -> None:
    assert mills_ratio(x) == pytest.approx(float(exact.mills_ratio(x)), rel=3e-15)
    assert cdf(x) == pytest.approx(float(mp.exp(exact.log_cdf(x))), rel=3e-15)
    assert log_cdf(x) == pytest.approx(float(exact.log_cdf(x)), rel=3e-15)
    assert density(x) == pytest.approx(float(mp.npdf(mp.mpf(x))), rel=1e-15)
    assert log_density(x) == pytest.approx(float(mp.log(mp.npdf(mp.mpf(x)))), rel=3e-15)


@pytest.mark.parametrize("x", [40.0, 1e3, 1e8, 1e70])
def test_tails_beyond_the_smallest_float_are_asymptotic(x: float) -> None:
    assert mills_ratio(x) == pytest.approx(1 / x * (1 - 1 / x**2 + 3 / x**4), rel=1e-8)
    assert log_cdf(-x) == pytest.approx(log_density(x) + math.log(mills_ratio(x)), rel=1e-15)
    assert cdf(-x) == 0.0
    assert cdf(x) == 1.0
    assert mills_ratio(-x) == math.inf


@given(st.floats(0.0, 50.0), st.floats(1e-9, 0.5))
def test_a_drop_of_the_mills_ratio_keeps_its_digits(middle: float, half_width: float) -> None:
    with mp.workdps(60):
        low, high = mp.mpf(middle) - mp.mpf(half_width), mp.mpf(middle) + mp.mpf(half_width)
    want = exact.mills_ratio(low) - exact.mills_ratio(high)
    assert mills_drop(middle, half_width) == pytest.approx(float(want), rel=1e-13)


def test_a_drop_over_no_width_is_nothing() -> None:
    assert mills_drop(1.0, 0.0) == 0.0
    assert mills_drop(7.0, 0.0) == 0.0


@given(st.floats(1e-300, 0.5))
def test_quantile_inverts_the_cdf(p: float) -> None:
    assert log_cdf(quantile(p)) == pytest.approx(math.log(p), rel=1e-14)


@given(st.floats(-1e6, -1e-3))
def test_quantile_from_log_inverts_log_cdf(log_p: float) -> None:
    assert log_cdf(quantile_from_log(log_p)) == pytest.approx(log_p, rel=1e-13)
