"""Numbers that must be refused wherever they can be given."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from accountant import bounded_range, gaussian, joint, laplace, rdp, selection, subsampled, zcdp
from accountant.events import Gaussian, PureDP
from accountant.selfcheck.numbers import NotANumberError, number
from accountant.selfcheck.privacy import NotUnderstoodError
from accountant.selfcheck.registry import canonical
from accountant.tradeoff import ApproximateCurve, GaussianCurve


def _noise(*, sigma: float = 1.0, T: float = 1.0, delta: float = 1e-5) -> Any:
    return gaussian.epsilon_from_mu(mu=gaussian.mu_from_sigma(sigma=sigma, rounds=_count(T)), delta=delta)


def _event(*, sigma: float = 1.0) -> Any:
    return Gaussian(noise_multiplier=sigma)


def _mu(*, mu: float = 1.0, delta: float = 1e-5) -> Any:
    return gaussian.epsilon_from_mu(mu=mu, delta=delta)


def _renyi(*, mu: float = 1.0, delta: float = 1e-5) -> Any:
    return rdp.epsilon_best(mu=mu, delta=delta)


def _curve(*, fpr: float = 0.1) -> Any:
    return GaussianCurve(mu=1.0).tpr(fpr)


def _delta(*, mu: float = 1.0) -> Any:
    return gaussian.delta_from_mu(mu=mu, epsilon=1.0)


def _budget(*, epsilon: float = 1.0, delta: float = 1e-5, T: float = 1.0) -> Any:
    return gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=_count(T))


def _claim(*, epsilon: float = 1.0, fpr: float = 0.1) -> Any:
    return ApproximateCurve(epsilon=epsilon, delta=1e-5).tpr(fpr)


def _pure(*, eps0: float = 0.1, T: float = 1.0, delta: float = 1e-5) -> Any:
    return joint.epsilon(delta=delta, mu=1.0, pure={eps0: _count(T)})


def _pure_event(*, eps0: float = 0.1) -> Any:
    return PureDP(epsilon=eps0)


def _laplace(*, eps0: float = 0.1, T: float = 1.0, delta: float = 1e-5) -> Any:
    return laplace.epsilon(delta=delta, eps0=eps0, rounds=_count(T))


def _order(*, alphas: float = 2.0, mu: float = 1.0, delta: float = 1e-5) -> Any:
    return rdp.epsilon_classic(mu=mu, delta=delta, orders=(alphas,))


def _range(*, eta: float = 1.0) -> Any:
    return bounded_range.rho(eta=eta), bounded_range.mu(eta=eta)


def _concentrated(*, rho: float = 1.0, delta: float = 1e-5) -> Any:
    return zcdp.epsilon_from_rho(rho=rho, delta=delta)


def _top_k(*, k: float = 1.0, d: float = 8.0, H: float = 1.0, scale: float = 1.0) -> Any:
    return selection.pure_epsilon(k=_count(k), dim=_count(d), score_bound=H, scale=scale)


def _subsampled(
    *, sigma: float = 1.0, sampling_rate: float = 0.1, T: float = 10.0, delta: float = 1e-5
) -> Any:
    return subsampled.epsilon(
        noise_multiplier=sigma, sampling_rate=sampling_rate, steps=_count(T), delta=delta
    )


_ENTRANCES: tuple[Callable[..., Any], ...] = (
    _noise,
    _event,
    _mu,
    _renyi,
    _curve,
    _delta,
    _budget,
    _claim,
    _pure,
    _pure_event,
    _laplace,
    _order,
    _range,
    _concentrated,
    _top_k,
    _subsampled,
)


def let_through(given: Mapping[str, Any]) -> list[str]:
    """Return which entrances accept some numbers that none should; empty if all refuse.

    Args:
        given: parameters; every entrance that has all of them is tried, the rest of its parameters being sound.

    Raises:
        NotUnderstoodError: no entrance has these parameters.
    """
    try:
        numbers = {name: number(value) for name, value in canonical(given).items() if name != "mechanism"}
    except NotANumberError as error:
        raise NotUnderstoodError(str(error)) from None
    asked = [
        entrance for entrance in _ENTRANCES if numbers.keys() <= inspect.signature(entrance).parameters.keys()
    ]
    if not asked:
        raise NotUnderstoodError(f"nothing takes {', '.join(sorted(given)) or 'no parameters'}")
    accepted = []
    for entrance in asked:
        try:
            found = entrance(**numbers)
        except (ValueError, TypeError):
            continue
        accepted.append(f"{entrance.__name__.strip('_')} gives {found}")
    return accepted


def _count(value: float) -> Any:
    """Return a whole number as an integer; anything else as it is, to be refused where it is used."""
    return int(value) if value.is_integer() else value
