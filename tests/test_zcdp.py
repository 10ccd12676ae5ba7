"""zCDP costs against the divergences that they bound, and their conversion against 40 digits."""

import math

import mpmath
import pytest
from mpmath import mp
from scipy.integrate import quad

from accountant import zcdp
from accountant.gaussian import epsilon_from_mu
from accountant.rdp import epsilon_classic


def laplace_divergence(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of two unit Laplace laws ``epsilon`` apart, by quadrature."""

    def integrand(x):
        return math.exp(-order * abs(x) - (1 - order) * abs(x - epsilon)) / 2

    total = sum(quad(integrand, *ends, epsabs=0)[0] for ends in ((-60, 0), (0, epsilon), (epsilon, 60)))
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.499, 0.501, 1.0, 30.0, 1e5])
def test_costs_have_all_their_digits(epsilon):
    with mp.workdps(60):
        eps = mp.mpf(epsilon)
        laplace, pure = eps + mp.exp(-eps) - 1, eps * mp.tanh(eps / 2)
    assert zcdp.rho_from_laplace(epsilon=epsilon) == pytest.approx(float(laplace), rel=1e-14)
    assert zcdp.rho_from_pure_epsilon(epsilon=epsilon) == pytest.approx(float(pure), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_laplace_never_exceeds_its_rho_and_reaches_it_at_order_one(epsilon):
    rho = zcdp.rho_from_laplace(epsilon=epsilon)
    for order in (1.1, 1.5, 2.0, 5.0, 20.0):
        assert laplace_divergence(epsilon, order) <= rho * order
    assert laplace_divergence(epsilon, 1.0001) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_randomised_response_never_exceeds_the_pure_rho(epsilon):
    rho, p = zcdp.rho_from_pure_epsilon(epsilon=epsilon), 1 / (1 + math.exp(-epsilon))
    for order in (1.0001, 1.5, 2.0, 5.0, 20.0):
        moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
        assert math.log(moment) / (order - 1) <= rho * order


@pytest.mark.parametrize(("rho", "delta"), [(1e-4, 1e-5), (0.5, 1e-5), (0.5, 1e-12), (50.0, 1e-5)])
def test_conversion_finds_the_best_order(rho, delta):
    with mp.workdps(40):
        r, d = mp.mpf(rho), mp.mpf(delta)

        def epsilon(order):
            return r * order + mp.log1p(-1 / order) - (mp.log(d) + mp.log(order)) / (order - 1)

        start = 1 + mp.sqrt(-mp.log(d) / r)
        order = mpmath.findroot(lambda a: mp.diff(epsilon, a), (start, start * mp.mpf("1.01")))
        want = epsilon(order)
    assert zcdp.epsilon_from_rho(rho=rho, delta=delta) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0, 30.0])
def test_conversions_of_a_gaussian_are_in_order(mu):
    rho = zcdp.rho_from_mu(mu=mu)
    best = zcdp.epsilon_from_rho(rho=rho, delta=1e-5)
    classic = zcdp.epsilon_from_rho_classic(rho=rho, delta=1e-5)
    assert epsilon_from_mu(mu=mu, delta=1e-5) < best < classic
    assert classic == pytest.approx(epsilon_classic(mu=mu, delta=1e-5), rel=1e-14)


def test_nothing_costs_nothing():
    assert zcdp.epsilon_from_rho(rho=0.0, delta=1e-5) == 0
    assert zcdp.epsilon_from_rho_classic(rho=0.0, delta=1e-5) == 0
    assert zcdp.rho_from_laplace(epsilon=0.0) == 0


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf])
def test_what_is_no_cost_is_refused(bad):
    for refused in (
        lambda: zcdp.rho_from_mu(mu=bad),
        lambda: zcdp.rho_from_pure_epsilon(epsilon=bad),
        lambda: zcdp.rho_from_laplace(epsilon=bad),
        lambda: zcdp.epsilon_from_rho(rho=bad, delta=1e-5),
        lambda: zcdp.epsilon_from_rho_classic(rho=bad, delta=1e-5),
        lambda: zcdp.epsilon_from_rho(rho=1.0, delta=bad),
    ):
        with pytest.raises(ValueError, match=r"must|NaN"):
            refused()
