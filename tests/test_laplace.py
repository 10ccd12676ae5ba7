"""Laplace noise against an exact sum, quadrature over the noise, and other accountants."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from accountant import joint, laplace
from accountant.gaussian import log_delta_from_mu


def exact_delta(epsilon: float, eps0: float, rounds: int) -> float:
    """Return delta by the multinomial over atoms and the tilted Irwin-Hall law, with 60 digits."""
    with mp.workdps(60):
        eps, e0 = mp.mpf(epsilon), mp.mpf(eps0)
        total = mp.mpf(0)
        for up in range(rounds + 1):
            for down in range(rounds + 1 - up):
                free = rounds - up - down
                ways = mp.factorial(rounds) / mp.factorial(up) / mp.factorial(down) / mp.factorial(free)
                scale = ways * mp.exp(-rounds * e0 / 2) / 2 ** (up + down)
                total += scale * _exceeding(eps - (up - down) * e0, e0, free) * mp.exp((up - down) * e0 / 2)
        return float(total)


def _exceeding(left, e0, free):
    """Integrate (1 - e^(left - l)) e^(l/2) over the free-fold convolution of 1/4 on (-e0, e0)."""
    if free == 0:
        return 1 - mp.exp(left) if left < 0 else mp.mpf(0)
    knots = [(2 * j - free) * e0 for j in range(free + 1)]

    def density(loss):
        above = (loss - knots[j] for j in range(free + 1))
        terms = (
            (-1) ** j * mp.binomial(free, j) * gap ** (free - 1) for j, gap in enumerate(above) if gap > 0
        )
        return sum(terms) / mp.factorial(free - 1) / mp.mpf(4) ** free

    ends = sorted({knot for knot in knots if knot > left} | {max(left, knots[0])})
    if len(ends) < 2:
        return mp.mpf(0)
    return mpmath.quad(lambda loss: (1 - mp.exp(left - loss)) * mp.exp(loss / 2) * density(loss), ends)


@pytest.mark.parametrize(
    ("epsilon", "eps0", "rounds"), [(0.3, 1.0, 1), (0.0, 0.7, 2), (1.0, 0.5, 3), (2.9, 1.0, 3), (0.4, 0.2, 5)]
)
def test_delta_agrees_with_the_exact_sum(epsilon, eps0, rounds):
    found = math.exp(laplace.log_delta(epsilon=epsilon, eps0=eps0, rounds=rounds))
    assert found == pytest.approx(exact_delta(epsilon, eps0, rounds), rel=1e-11)


@pytest.mark.parametrize(("epsilon", "eps0", "mu"), [(0.0, 0.5, 0.25), (2.0, 1.0, 0.5), (1.0, 6.0, 2.0)])
def test_delta_next_to_gaussian_noise_agrees_with_quadrature_over_the_noise(epsilon, eps0, mu):
    """The Laplace output is drawn; what it leaves of epsilon goes to the Gaussian part."""
    with mp.workdps(25):

        def integrand(x):
            left = float(epsilon - eps0 * (abs(x / eps0 - 1) - abs(x / eps0)))
            return mp.exp(-abs(x)) / 2 * mp.exp(log_delta_from_mu(epsilon=left, mu=mu))

        want: Any = mpmath.quad(integrand, [-60, -5, 0, eps0 / 2, eps0, eps0 + 5, eps0 + 60])
    found = math.exp(laplace.log_delta(epsilon=epsilon, eps0=eps0, mu=mu))
    assert found == pytest.approx(float(want), rel=1e-10)


@given(eps0=st.floats(0.01, 2.0), rounds=st.integers(1, 30), mu=st.sampled_from([0.0, 0.3, 2.0]))
@settings(max_examples=40)
def test_laplace_costs_no_more_than_pure_and_no_less_than_nothing(eps0, rounds, mu):
    found = laplace.epsilon(delta=1e-5, eps0=eps0, rounds=rounds, mu=mu)
    assert found <= joint.epsilon(delta=1e-5, mu=mu, pure={eps0: rounds}) * (1 + 1e-8)
    if found > 0:
        assert laplace.log_delta(epsilon=found, eps0=eps0, rounds=rounds, mu=mu) <= math.log(1e-5)


def test_many_small_rounds_are_a_gaussian_in_the_limit():
    """mu = eps_0 sqrt(T), the central limit; the next term is of order 1 / sqrt(T)."""
    found = laplace.log_delta(epsilon=1.0, eps0=0.01, rounds=1000)
    assert found == pytest.approx(log_delta_from_mu(epsilon=1.0, mu=0.01 * math.sqrt(1000)), rel=0.02)


def test_total_variation_of_one_round():
    assert math.exp(laplace.log_delta(epsilon=0.0, eps0=3.0)) == pytest.approx(-math.expm1(-1.5), rel=1e-12)
    assert laplace.log_delta(epsilon=3.1, eps0=3.0) == -np.inf


@pytest.mark.parametrize(
    "wrong",
    [{"eps0": math.nan}, {"eps0": 0.0}, {"rounds": 0}, {"rounds": 5000}, {"mu": -1.0}, {"epsilon": -1.0}],
)
def test_what_it_cannot_do_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        laplace.log_delta(**{"epsilon": 1.0, "eps0": 1.0, "rounds": 2, "mu": 0.0, **wrong})


def test_noise_too_fine_for_the_grid_is_refused():
    with pytest.raises(ValueError, match="too fine"):
        laplace.log_delta(epsilon=1.0, eps0=100.0, rounds=50, mu=1e-3)
