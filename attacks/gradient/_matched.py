r"""A gradient matched filter: the candidate's own gradient, in the metric of what else is in the upload.

The sum over a batch, :math:`X = \sum_i g_i + \text{noise}`, has about mean :math:`B \mu` without the candidate. With
it, it is moved by g, and its covariance is :math:`(B - 1) S + \sigma^2 C^2 I`, where mu and S are mean and second
moment of a record's gradient. Of all linear scores the one along :math:`M g`, with M the inverse of that, tells the
two apart best:

.. math:: \text{score}(x) = \frac{g^T M (X - B \mu)}{\sqrt{g^T M g}}, \qquad \text{SNR}^2 = E[g^T M g]

For others it has mean 0 and, as far as S is known, variance 1; members are moved by the SNR. S is a share of the second
moment of n public gradients, the rows of P, and a base E that is diagonal in some basis and has an inverse. With
:math:`D = ((B - 1) E + \sigma^2 C^2 I)^{-1}` and the Woodbury identity,

.. math:: M g = D g - D P^T \left( \tfrac{n}{(B - 1) s} I + P D P^T \right)^{-1} P D g

so that nothing larger than n x n is factored, whatever the model's size. Gradients are clipped as the client clipped
them. A delta, or a gradient shortened to a step's clip norm, is known up to a factor: it is given the length that is
expected of a sum. Where any multiple of the weights W may be in X, their direction says nothing, as if it had
infinite variance: :math:`M - M W (W^T M W)^{-1} W^T M` takes the place of M.

Source: Turin (1960), "An introduction to matched filters"; Sankararaman et al. (2009) for records in a sum; Woodbury's
identity: Higham (2002), Problem 13.9. Its use on gradients is ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

from attacks.gradient._basis import Basis
from attacks.gradient._inner import Sent
from privkit.exposure import Exposure

Rows = Mapping[str, Float64[np.ndarray, "N p"]]
"""Gradients of some records by map, each in the basis of the map."""

_LEAST_OTHERS = 0.5
"""Other records behind an upload, at least: those of a batch of one have no spread to divide by."""


class Batch(NamedTuple):
    """What is known of every upload of a kind.

    Attributes:
        size: records behind it, B.
        std: standard deviation of the noise on each number of their sum.
        rounding: variance of what rounding put on each number of their sum, by map; of maps where it matters.
    """

    size: int
    std: float = 0.0
    rounding: tuple[tuple[str, float], ...] = ()

    @property
    def others(self) -> float:
        """Return B - 1, at least one half."""
        return max(self.size - 1.0, _LEAST_OTHERS)

    def variance(self, name: str) -> float:
        """Return the variance of all that is on each number of one map's sum beside the gradients of others."""
        return self.std**2 + dict(self.rounding).get(name, 0.0)


class Whitened(NamedTuple):
    """One map's gradients g of some records, and M g, in the basis of the map; shape [N, p] each."""

    name: str
    own: Float64[np.ndarray, "N p"]
    directions: Float64[np.ndarray, "N p"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter:
    """What public records say of gradients at the weights of one round.

    Attributes:
        bases: E by map, of maps in which public records have a gradient.
        public: the records.
        factor: what each one's gradient is multiplied by, as a client clips it, shape [P].
        weight: what it is then multiplied by in S, shape [P].
        share: of the sample in S, s; 0 for the base alone.
    """

    bases: Mapping[str, Basis]
    public: Exposure
    factor: Float64[np.ndarray, " P"]
    weight: Float64[np.ndarray, " P"]
    share: float
    _grams: dict[object, Float64[np.ndarray, "P P"]] = field(default_factory=dict)
    _rows: dict[str, Float32[np.ndarray, "P p"]] = field(default_factory=dict)

    def mean(self, name: str) -> Float64[np.ndarray, " p"]:
        """Return the mean of public gradients in the basis of a map."""
        return self.rows(name).mean(0, dtype=np.float64)

    def rows(self, name: str) -> Float32[np.ndarray, "P p"]:
        """Return public gradients in the basis of a map; kept for all uploads, 4 bytes a number."""
        if name not in self._rows:
            found_Pp = self.bases[name].rows(self.public.traces[name], self.factor)
            self._rows[name] = found_Pp.astype(np.float32)
        return self._rows[name]

    def own(self, candidates: Exposure, factor_N: Float64[np.ndarray, " N"], names: tuple[str, ...]) -> Rows:
        """Return g of some candidates by map, in the basis of each."""
        return {name: self.bases[name].rows(candidates.traces[name], factor_N) for name in names}

    def whitened(self, own: Rows, batch: Batch) -> Iterator[Whitened]:
        """Yield g and M g of some candidates, map by map."""
        if not self.share:
            for name, rows_Np in own.items():
                yield Whitened(name, rows_Np, rows_Np * self._inverse_base(name, batch))
            return
        names = tuple(own)
        seen_PN = np.zeros((len(self.weight), len(own[names[0]])))
        for name, rows_Np in own.items():
            seen_PN += self._sample(name) @ (rows_Np * self._inverse_base(name, batch)).T
        inner_PP = self._inner(names, batch) + np.eye(len(seen_PN)) * len(seen_PN) / (
            batch.others * self.share
        )
        solved_PN = np.linalg.solve(inner_PP, seen_PN)
        for name, rows_Np in own.items():
            left_Np = rows_Np - solved_PN.T @ self._sample(name)
            yield Whitened(name, rows_Np, left_Np * self._inverse_base(name, batch))

    def _sample(self, name: str) -> Float64[np.ndarray, "P p"]:
        return self.rows(name) * self.weight[:, None]

    def _inverse_base(self, name: str, batch: Batch) -> Float64[np.ndarray, " p"]:
        return 1.0 / (batch.others * self.bases[name].energy + batch.variance(name)).ravel()

    def _inner(self, names: tuple[str, ...], batch: Batch) -> Float64[np.ndarray, "P P"]:
        """Return ``P D P^T``, made once for all uploads of a kind."""
        if (names, batch) not in self._grams:
            gram_PP = np.zeros((len(self.weight), len(self.weight)))
            for name in names:
                sample_Pp = self._sample(name)
                gram_PP += (sample_Pp * self._inverse_base(name, batch)) @ sample_Pp.T
            self._grams[names, batch] = gram_PP
        return self._grams[names, batch]


def matched(
    filter: Filter,
    candidates: Exposure,
    factor_N: Float64[np.ndarray, " N"],
    sent: Sent,
    batch: Batch,
    *,
    has_length: bool,
    unknown: Sent = MappingProxyType({}),
) -> Float64[np.ndarray, " N"]:
    """Return the matched filter of each candidate; 0 for one without a gradient.

    Args:
        filter: of public records.
        candidates: their passes.
        factor_N: what each one's gradient is multiplied by, as its client clips it.
        sent: a mean of gradients, by map.
        batch: what is known of it.
        has_length: whether its length is that of a mean gradient; if not, it is given an expected length.
        unknown: by map, what any multiple of may be in what was sent; such directions say nothing.
    """
    names = tuple(name for name in sent if name in filter.bases)
    times = batch.size if has_length else _scale(filter, sent, names, batch)
    count, odd = len(factor_N), [name for name in names if name in unknown]
    own = filter.own(candidates, factor_N, names)
    if odd:
        own = {name: np.concatenate([rows, _odd(filter, unknown, odd, name)]) for name, rows in own.items()}
    found_K, power_K = np.zeros(count + len(odd)), np.zeros(count + len(odd))
    across_KU = np.zeros((count + len(odd), len(odd)))
    for name, own_Kp, directions_Kp in filter.whitened(own, batch):
        left_p = times * filter.bases[name].rotated(sent[name]).ravel() - batch.size * filter.mean(name)
        found_K += directions_Kp @ left_p
        power_K += np.einsum("kp,kp->k", directions_Kp, own_Kp)
        across_KU += directions_Kp @ own_Kp[count:].T
    if not odd:
        return standardised(found_K, power_K)
    along_NU = np.linalg.solve(across_KU[count:], across_KU[:count].T).T
    return standardised(
        found_K[:count] - along_NU @ found_K[count:],
        power_K[:count] - (along_NU * across_KU[:count]).sum(1),
    )


def _odd(filter: Filter, unknown: Sent, odd: Sequence[str], name: str) -> Float64[np.ndarray, "U p"]:
    """Return, of one map, a row for each direction that says nothing; each lies in one map."""
    rows_Up = np.zeros((len(odd), filter.bases[name].energy.size))
    if name in odd:
        rows_Up[odd.index(name)] = filter.bases[name].rotated(unknown[name].astype(np.float64)).ravel()
    return rows_Up


def standardised(
    found: Float64[np.ndarray, "*N"], power: Float64[np.ndarray, "*N"]
) -> Float64[np.ndarray, "*N"]:
    """Return inner products over the root of ``g^T M g``; 0 where there is no gradient."""
    root = np.sqrt(np.maximum(power, 0.0))
    return np.divide(found, root, out=np.zeros_like(found), where=root > 0)


def _scale(filter: Filter, sent: Sent, names: tuple[str, ...], batch: Batch) -> float:
    """Return what makes an upload as long as a sum of gradients is expected to be."""
    record, mean, squares = 0.0, 0.0, 0.0
    for name in names:
        rows_Pp = filter.rows(name)
        record += float(np.vdot(rows_Pp, rows_Pp)) / len(rows_Pp)
        mean += float((filter.mean(name) ** 2).sum())
        squares += float((sent[name] ** 2).sum())
    expected = batch.size * record + batch.size * (batch.size - 1) * mean
    return float(np.sqrt(expected / squares)) if squares > 0 else 0.0
