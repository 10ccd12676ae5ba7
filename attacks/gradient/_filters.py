"""Three ways to know the covariance that a matched filter asks for, from the same public records."""

from typing import Literal

import numpy as np

from attacks._base import NotApplicableError
from attacks.gradient._inner import clip_factors, rows_of, squares
from attacks.gradient._kronecker import Flat, kronecker
from attacks.gradient._matched import Batch, Filter, matched
from attacks.gradient._seen import Seen
from privkit.exposure import Exposure

Estimator = Literal["both", "kronecker", "dual"]
"""``kronecker``: a product of two small second moments per map; ``dual``: the sample of public gradients itself, with a
ridge; ``both``: one half of each, the product filling in what a sample does not reach."""

RIDGES: dict[Estimator, float] = {"both": 0.1, "kronecker": 0.1, "dual": 1e-5}


def made(
    public: Exposure,
    names: tuple[str, ...],
    estimator: Estimator,
    *,
    clip_norm: float,
    noisy: bool,
    ridge: float,
) -> Filter:
    """Return a filter of some maps.

    Args:
        public: the attacker's own records at the weights of the round.
        names: of the maps that were sent.
        estimator: how the covariance is estimated.
        clip_norm: of DP-SGD, infinite without.
        noisy: whether noise is on uploads; without it, ``dual`` scales every public gradient to one length.
        ridge: of ``kronecker`` and ``both``, a share of the mean of each factor's eigenvalues without the largest; of
            ``dual``, a share of the largest eigenvalue.

    Raises:
        NotApplicableError: no public record has a gradient in any of these maps.
    """
    factor_P = clip_factors(public, clip_norm)
    weight_P = np.ones(len(factor_P))
    if estimator == "dual":
        bases, weight_P = _dual(public, names, factor_P, noisy=noisy, ridge=ridge)
    else:
        share = 1.0 if estimator == "kronecker" else 0.5
        found = {name: kronecker(public.traces[name], factor_P * share**0.5, ridge=ridge) for name in names}
        bases = {name: base for name, base in found.items() if base is not None}
    if not bases:
        raise NotApplicableError("no public record has a gradient in any map that was sent; own other ones")
    share = {"both": 0.5, "kronecker": 0.0, "dual": 1.0}[estimator]
    return Filter(bases=bases, public=public, factor=factor_P, weight=weight_P, share=share)


def filtered(seen: Seen, estimator: Estimator, *, ridge: float | None) -> np.ndarray:
    """Return the matched filter of each candidate of an upload, shape [N].

    Raises:
        NotApplicableError: the attacker owns no records, or these have no gradient in what was sent.
    """
    noise, names = seen.noise, tuple(seen.sent)
    used = RIDGES[estimator] if ridge is None else ridge
    filter = seen.once(
        ("filter", estimator, noise, used, names),
        lambda: made(
            seen.owned, names, estimator, clip_norm=noise.clip_norm, noisy=noise.std > 0, ridge=used
        ),
    )
    return matched(
        filter,
        seen.candidates,
        clip_factors(seen.candidates, noise.clip_norm),
        seen.sent,
        Batch(seen.batch_size, noise.std, seen.rounding),
        has_length=seen.has_length,
        unknown=seen.unknown,
    )


def _dual(
    public: Exposure, names: tuple[str, ...], factor_P: np.ndarray, *, noisy: bool, ridge: float
) -> tuple[dict[str, Flat], np.ndarray]:
    """Return a ridge in all directions, and what public gradients are multiplied by in the sample."""
    squares_P = squares(public, names) * factor_P**2
    weight_P = np.ones(len(factor_P))
    if not noisy:
        weight_P = np.sqrt(squares_P.mean() / np.where(squares_P > 0, squares_P, np.inf))
    gram_PP = np.zeros((len(factor_P), len(factor_P)))
    for name in names:
        rows_Pp = rows_of(public.traces[name]) * (factor_P * weight_P)[:, None]
        gram_PP += rows_Pp @ rows_Pp.T
    largest = float(np.linalg.eigvalsh(gram_PP)[-1]) / len(gram_PP)
    if not largest > 0:
        return {}, weight_P
    shapes = {
        name: (public.traces[name].slopes.shape[-1], public.traces[name].inputs.shape[-1]) for name in names
    }
    return {name: Flat(np.full(shape, ridge * largest)) for name, shape in shapes.items()}, weight_P
