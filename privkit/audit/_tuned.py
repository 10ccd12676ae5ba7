"""Runs that tune a transformer: what their server can compute, and what a claim means for one batch of theirs."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accountant.events import Event, Gaussian, SubsampledGaussian, leaves
from accountant.tradeoff import AbstractCurve, GaussianCurve
from privkit.exposure import BatchRecords, ClientRecords, GradientView
from privkit.store import Run
from privkit.transcript import Transcript


def tunes(config: Mapping[str, Any]) -> bool:
    """Return whether a run's configuration, as plain values, is of a federation that tunes a transformer."""
    return "tuning" in config


def asked(run: Run) -> BatchRecords | ClientRecords:
    """Return the records that attacks on such a run are asked about: each in one round, or of a client in all."""
    from privkit.finetune import questions

    return questions.read(run)


def seen(run: Run) -> GradientView:
    """Return what the server of such a run has, and what it can compute about the candidates."""
    from privkit.finetune.view import view

    return view(run)


def by_round(run: Run) -> Iterator[tuple[int, GradientView]]:
    """Yield the same round by round, for records that are asked about in all."""
    from privkit.finetune.view import by_round

    yield from by_round(run)


def batch_ceiling(transcripts: Iterable[Transcript]) -> AbstractCurve | None:
    """Return what noise alone allows an attacker that asks whether a record was in one batch.

    Amplification by sampling keeps secret who is in a batch, and this attacker asks just that: each step counts as the
    Gaussian mechanism it is. ``None`` where some upload had no noise, or another kind.

    Source: Balle, Barthe and Gaboardi (2018), https://arxiv.org/abs/1807.01647: without sampling nothing is amplified.
    """
    found = [_mu(release.event) for transcript in transcripts for release in transcript.releases]
    known = [mu for mu in found if mu is not None]
    return GaussianCurve(mu=max(known)) if known and len(known) == len(found) else None


def _mu(event: Event) -> float | None:
    """Return mu of one upload whose batches are known."""
    squares = 0.0
    for leaf, count in leaves(event):
        match leaf:
            case Gaussian(noise_multiplier=sigma) | SubsampledGaussian(noise_multiplier=sigma):
                squares += count / sigma**2
            case _:
                return None
    return math.sqrt(squares)
