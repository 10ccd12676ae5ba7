"""A check of the noise on gradients that needs what was sent alone: an upload cannot be shorter than its noise.

A client sends ``(s + n) / B`` with a sum of clipped gradients s and noise n of claimed standard deviation ``sigma C``
on each of D numbers. Whatever s is, ``|s + n|^2 / (sigma C)^2`` is a non-central chi-square variable, which is
stochastically larger than the central one with D degrees of freedom: the chance of the latter to be as small is a
p-value of "the noise is at least as large as claimed". It loses little: ``|s| <= B C`` is small beside ``sigma C
sqrt(D)``.

Source: Johnson, Kotz and Balakrishnan (1995), Chapter 29 (non-central chi-square: stochastically increasing).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np

from attacks._base import NotApplicableError
from attacks.gradient._noise import noise_of
from attacks.statistics.residuals import Squares
from privkit.audit import _tuned
from privkit.audit.white_box import Check, Seen, noise_names
from privkit.release import Release, Update


def gradient_noise(runs: Sequence[Seen]) -> dict[str, Squares]:
    """Return how large what was sent is beside its noise as claimed: all, and that of each client and round.

    Of runs that tune a transformer and send gradients with noise.
    """
    found: dict[str, Squares] = {}
    for run in runs:
        for release, sent in _uploads(run):
            for name in noise_names(release):
                found[name] = found[name].with_more(sent) if name in found else sent
    return found


def gradient_checks(noise: Mapping[str, Squares]) -> dict[str, Check]:
    """Return a check of each part of :func:`gradient_noise`."""
    return {
        name: Check(
            sent.p_value, f"uploads are {sent.ratio:.3f} times as long as the {name} alone is claimed to be"
        )
        for name, sent in noise.items()
    }


def _uploads(run: Seen) -> Iterator[tuple[Release, Squares]]:
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
            times = config["batch"] / std
            parts = [
                Squares.of(times * np.ravel(array).astype(np.float64))
                for array in sent.named.values()
                if array.size
            ]
            yield release, reduce(Squares.with_more, parts)
