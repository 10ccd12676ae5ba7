"""Bounded-range mechanisms against 60 digits, and against the pairs of outcomes that they are the worst of."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from accountant import bounded_range

ETAS = [1e-8, 1e-4, 0.0199, 0.0201, 0.2499, 0.2501, 1.0, 8.0, 700.0, 3000.0, 1e5]


def worst_pair(eta: float, share: float) -> tuple[float, float]:
    """Return P and Q of the first of two outcomes whose log-ratios are ``share eta`` and ``(share - 1) eta``."""
    low, high = math.exp((share - 1) * eta), math.exp(share * eta)
    second = (1 - low) / (high - low)
    return second * high, second


@pytest.mark.parametrize("eta", ETAS)
def test_rho_has_all_its_digits(eta):
    with mp.workdps(60):
        u = mp.mpf(eta) / (1 - mp.exp(-mp.mpf(eta)))
        want = u - 1 - mp.log(u)
    assert bounded_range.rho(eta=eta) == pytest.approx(float(want), rel=2e-13)


@pytest.mark.parametrize("eta", [eta for eta in ETAS if eta < 100])
def test_mu_has_all_its_digits(eta):
    with mp.workdps(80):
        want = 2 * mp.sqrt(2) * mpmath.erfinv(mp.tanh(mp.mpf(eta) / 4))
    assert bounded_range.mu(eta=eta) == pytest.approx(float(want), rel=2e-13)


@pytest.mark.parametrize("eta", [3000.0, 1e5])
def test_mu_beyond_the_smallest_float(eta):
    """The tail at mu / 2 is the probability 1 / (1 + e^(eta/2)), far below the smallest float."""
    with mp.workdps(60):
        found = mp.log(mp.erfc(mp.mpf(bounded_range.mu(eta=eta)) / 2 / mp.sqrt(2)) / 2)
    assert float(found) == pytest.approx(-eta / 2, rel=1e-12)


@given(eta=st.floats(0.05, 8.0), share=st.floats(0.05, 0.95))
def test_no_pair_of_outcomes_costs_more(eta, share):
    p, q = worst_pair(eta, share)
    divergence = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert divergence <= bounded_range.rho(eta=eta) * (1 + 1e-9)
    with mp.workdps(30):
        apart = mp.sqrt(2) * (mpmath.erfinv(2 * mp.mpf(p) - 1) - mpmath.erfinv(2 * mp.mpf(q) - 1))
    assert float(apart) <= bounded_range.mu(eta=eta) * (1 + 1e-9)


@pytest.mark.parametrize("eta", [0.3, 1.0, 4.0])
def test_some_pair_costs_as_much(eta):
    def divergence(share):
        p, q = worst_pair(eta, share)
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    largest = max(divergence(share) for share in np.linspace(0.01, 0.99, 2001))
    assert largest == pytest.approx(bounded_range.rho(eta=eta), rel=1e-6)


@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_range_is_refused(eta):
    for cost in (bounded_range.rho, bounded_range.mu):
        with pytest.raises(ValueError, match="eta"):
            cost(eta=eta)
