"""Numbers that must be refused wherever they can be given."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from accountant import (
    bounded_range,
    gaussian,
    joint,
    laplace,
    paper,
    rdp,
    selection,
    subsampled,
    target,
    zcdp,
)
from accountant.claimed_rules import BestRenyi, Exact, Recipe
from accountant.counterexamples.e07_encoder import encoder_ratio
from accountant.events import Gaussian, GumbelTopK, PureDP
from accountant.selfcheck.numbers import NotANumberError, grid, number
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


def _curve(*, fpr: float = 0.1, mu: float = 1.0) -> Any:
    return GaussianCurve(mu=mu).tpr(fpr)


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


def _order(*, alphas: Any = 2.0, mu: float = 1.0, delta: float = 1e-5) -> Any:
    return rdp.epsilon_classic(mu=mu, delta=delta, orders=_orders(alphas))


def _noise_by_order(*, alphas: Any = 128.0, epsilon: float = 1.0, delta: float = 1e-5, T: float = 1.0) -> Any:
    budget = {"epsilon": epsilon, "delta": delta, "rounds": _count(T)}
    return rdp.sigma_classic(**budget, orders=_orders(alphas))


def _best_noise_by_order(
    *, alphas: Any = 128.0, epsilon: float = 1.0, delta: float = 1e-5, T: float = 1.0
) -> Any:
    return BestRenyi(orders=_orders(alphas)).sigma(epsilon=epsilon, delta=delta, rounds=_count(T))


def _formula(*, c1: float = 1.0, epsilon: float = 1.0, delta: float = 1e-5, T: float = 1.0) -> Any:
    return paper.sigma_from_formula(c1=c1, epsilon=epsilon, delta=delta, rounds=_count(T))


def _split(*, r: float = 0.1, epsilon: float = 1.0, delta: float = 1e-5, T: float = 1.0) -> Any:
    return joint.sigma_from_epsilon(selection_share=r, epsilon=epsilon, delta=delta, rounds=_count(T))


def _groups(*, sigma_A: float = 1.0, sigma_B: float = 1.0, T: float = 1.0) -> Any:
    return tuple(gaussian.mu_from_sigma(sigma=sigma, rounds=_count(T)) for sigma in (sigma_A, sigma_B))


def _reference(*, sigma_ref: float = 1.0, T: float = 1.0) -> Any:
    return gaussian.mu_from_sigma(sigma=sigma_ref, rounds=_count(T))


def _advantage(*, advantage: float = 0.1, T: float = 1.0) -> Any:
    return target.sigma_for(target.Advantage(advantage=advantage), rounds=_count(T))


def _auc(*, auc: float = 0.6, T: float = 1.0) -> Any:
    return target.sigma_for(target.Auc(auc=auc), rounds=_count(T))


def _tpr(*, tpr: float = 0.2, fpr: float = 0.1, T: float = 1.0) -> Any:
    return target.sigma_for(target.TprAtFpr(tpr=tpr, fpr=fpr), rounds=_count(T))


def _encoder(*, n_c: float = 5.0, other_class: float = 5.0) -> Any:
    return encoder_ratio(n_c=_count(n_c), other_class=_count(other_class))


def _stated(*, claimed_eps: float = 1.0, claimed_delta: float = 1e-5, T: float = 1.0) -> Any:
    return Recipe(epsilon=claimed_eps, delta=claimed_delta, rounds=_count(T), rule=Exact()).sigma


def _stated_at(*, claimed_eps: float = 1.0, delta: float = 1e-5) -> Any:
    return _stated(claimed_eps=claimed_eps, claimed_delta=delta)


def _gumbel(*, beta: float = 1.0, k: float = 1.0, H: float = 1.0) -> Any:
    return GumbelTopK(k=_count(k), dim=int(k) + 1, score_bound=H, scale=beta)


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


_BESIDE_ORDERS = frozenset({"conversion", "delta"})
_DESCRIBING = ("mechanism", "conversion")
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
    _noise_by_order,
    _best_noise_by_order,
    _formula,
    _split,
    _groups,
    _reference,
    _advantage,
    _auc,
    _tpr,
    _encoder,
    _stated,
    _stated_at,
    _gumbel,
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
        numbers = {
            name: grid(value) if isinstance(value, list) else number(value)
            for name, value in canonical(_orders_named(given)).items()
            if name not in _DESCRIBING
        }
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


def _orders_named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in which an alpha that stands next to what a Renyi curve needs is called an order."""
    an_order = "alpha" in given and not _BESIDE_ORDERS.isdisjoint(given)
    return {"order" if an_order and name == "alpha" else name: value for name, value in given.items()}


def _orders(alphas: Any) -> tuple[float, ...]:
    return alphas if isinstance(alphas, tuple) else (alphas,)


def _count(value: float) -> Any:
    """Return a whole number as an integer; anything else as it is, to be refused where it is used."""
    return int(value) if value.is_integer() else value
