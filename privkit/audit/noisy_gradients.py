"""A check of the noise on gradients that needs what was sent alone: an upload cannot be shorter than its noise.

A client sends ``(s + n) / B`` with a sum of clipped gradients s and noise n of claimed standard deviation ``sigma C``
on each of D numbers. Whatever s is, ``|s + n|^2 / (sigma C)^2`` is a non-central chi-square variable, which is
stochastically larger than the central one with D degrees of freedom: the chance of the latter to be as small is a
p-value of "the noise is at least as large as claimed". It loses little: ``|s| <= B C`` is small beside ``sigma C
sqrt(D)``.

Source: Johnson, Kotz and Balakrishnan (1995), Chapter 29 (non-central chi-square: stochastically increasing).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError
from attacks.gradient._noise import noise_of
from attacks.statistics.residuals import scale_p_value, scale_ratio
from privkit.audit import _tuned
from privkit.audit.white_box import Check, Seen
from privkit.release import Release, Update


def gradient_noise(runs: Sequence[Seen]) -> dict[str, Float64[np.ndarray, " _"]]:
    """Return what was sent over the claimed standard deviation of its noise: all, and of each client and round.

    Of runs that tune a transformer and send gradients with noise, each message apart.
    """
    parts: dict[str, list[np.ndarray]] = {}
    for run in runs:
        for release, flat_D in _uploads(run):
            for name in ("noise", f"noise of client {release.client}", f"noise of round {release.round}"):
                parts.setdefault(name, []).append(flat_D)
    return {name: np.concatenate(found) for name, found in parts.items()}


def gradient_checks(runs: Sequence[Seen]) -> dict[str, Check]:
    """Return a check of the noise on gradients, and of that of each client and round; none where there is no noise."""
    return {
        name: Check(
            scale_p_value(found),
            f"uploads are {scale_ratio(found):.3f} times as long as the {name} alone is claimed to be",
        )
        for name, found in gradient_noise(runs).items()
    }


def _uploads(run: Seen) -> Iterator[tuple[Release, Float64[np.ndarray, " D"]]]:
    config = run.view.run.info.config
    # a mean of several senders' messages has less noise than each
    if not _tuned.tunes(config) or config.get("secure_aggregation"):
        return
    for release in run.view.transcript.releases:
        sent = release.payload
        if not isinstance(sent, Update) or sent.means != "gradient":
            continue
        try:
            std = noise_of(release).std
        except NotApplicableError:
            continue
        if std > 0:
            # a client of fewer records divides by less: its upload then counts as longer than it is, never as shorter
            flat_D = np.concatenate([np.ravel(sent.named[n]).astype(np.float64) for n in sorted(sent.named)])
            yield release, flat_D * (config["batch"] / std)
