"""Private selection of coordinates: its scale, its cost, and how much of the bound it really attains."""

from accountant import groupwise, selection
from accountant.selfcheck.attained import attained_log_ratio
from accountant.selfcheck.privacy import refuse_large
from accountant.selfcheck.registry import law

_ANY = ("", "laplace", "pure")


@law("lambda", "scale", mechanisms=_ANY)
def paper_scale(*, d: int, rho: float, H: float, epsilon: float, r: float, T: int = 1) -> float:
    k = groupwise.size(dim=d, rho=rho)
    return scale(k=k, H=H, epsilon=epsilon, r=r, T=T)


@law("lambda", "scale", mechanisms=_ANY)
def scale(*, k: int, H: float, epsilon: float, r: float = 1.0, T: int = 1) -> float:
    return selection.scale(k=k, score_bound=H, epsilon_total=r * epsilon, rounds=T)


@law("eps", "epsilon", mechanisms=_ANY)
def pure_epsilon(*, d: int, k: int, H: float, scale: float, monotone: bool = False, T: int = 1) -> float:
    """Return the pure cost of selecting a set; scores that all move in one direction cost half."""
    once = selection.pure_epsilon(k=k, dim=d, score_bound=H, scale=scale)
    return T * once / (2 if monotone else 1)


@law("log_ratio_fraction", mechanisms=_ANY)
def log_ratio_fraction(*, d: int, k: int, H: float, scale: float) -> float:
    bound = selection.pure_epsilon(k=k, dim=d, score_bound=H, scale=scale)
    return attained_log_ratio(dim=d, k=k, shift=H / scale) / bound


@law("overlap", "expected_overlap", mechanisms=_ANY)
def expected_overlap(*, d: int, k: int, scale: float, H: float = 1.0) -> float:
    refuse_large(d=d)
    return selection.fidelity(dim=d, k=k, scale_over_range=scale / H).expected_overlap
