"""``privkit calibrate dpsgd --target-auc``: the noise that leaves the best linear attack on one upload at an AUC."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from accountant.rounded import rounded_up
from privkit.errors import InputError

if TYPE_CHECKING:
    from accountant.subsampled import Spent
    from privkit.store import Run


@dataclass(frozen=True, kw_only=True)
class Uploads:
    """What is known of uploads to come.

    Attributes:
        batch: records behind each; ``None``: those of the run, or nothing is known.
        dimension: directions that gradients of records differ in; ``None``: measured, or nothing is known.
        run: whose attacker's own records are measured; ``None`` without.
        clip_norm: largest norm of one record's gradient, for what is measured.
    """

    batch: int | None
    dimension: float | None
    run: Path | None
    clip_norm: float


@dataclass(frozen=True, kw_only=True)
class Steps:
    """How often a record may be in an upload: steps, the probability that it joins one, and delta."""

    count: int
    sampling_rate: float | None
    delta: float


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A noise multiplier, and what it leaves.

    Attributes:
        sigma: noise standard deviation / clip norm; 0 where the batch alone hides a record well enough.
        predicted_auc: of the matched filter.
        auc_ceiling: that no attack on one upload exceeds, adding or removing a record; 1 without noise.
        batch: records behind an upload.
        effective_dimension: at this noise; ``None`` where nothing is assumed of gradients, or it shows none.
        rounds: of a run, from 0, that were measured; the one that needs most noise decides.
    """

    sigma: float
    predicted_auc: float
    auc_ceiling: float
    batch: int
    effective_dimension: float | None
    rounds: tuple[int, ...] = ()


def show(target: float, uploads: Uploads, steps: Steps, *, as_json: bool) -> None:
    """Print the noise that leaves an AUC, the ceiling of its proof, and what it promises over all steps."""
    found = _measured(target, uploads) if uploads.run is not None else _by_law(target, uploads)
    spent = _spent(found.sigma, steps)
    if as_json:
        import json

        from accountant.contract import Relation

        document = {"target_auc": target, **asdict(found), "relation": Relation.ADD_REMOVE.value}
        document |= {"sampling_rate": steps.sampling_rate, "steps": steps.count, "delta": steps.delta}
        document |= {
            "epsilon": spent and spent.epsilon,
            "method": spent and spent.method,
            "bound": spent and spent.bound.value,
        }
        typer.echo(json.dumps(document, allow_nan=False))
        return
    for line in _lines(found, steps, spent):
        typer.echo(line)


def _by_law(target: float, uploads: Uploads) -> Planned:
    """Return the noise for gradients of a stated dimension, or for any."""
    from attacks.gradient._snr import auc_ceiling, predicted_auc, sigma_for_auc

    if uploads.dimension is not None and uploads.batch is None:
        raise InputError("--effective-dimension says what others hide, and not how many; give --batch too.")
    batch = 1 if uploads.batch is None else uploads.batch
    sigma = sigma_for_auc(auc=target, effective_dimension=uploads.dimension, batch_size=batch)
    ceiling = auc_ceiling(sigma=sigma) if sigma else 1.0
    return Planned(
        sigma=sigma,
        predicted_auc=ceiling
        if uploads.dimension is None
        else predicted_auc(effective_dimension=uploads.dimension, batch_size=batch, sigma=sigma),
        auc_ceiling=ceiling,
        batch=batch,
        effective_dimension=uploads.dimension,
    )


def _measured(target: float, uploads: Uploads) -> Planned:
    """Return the noise for the gradients that the attacker's own records have at the weights of a run."""
    from attacks.gradient._plan import sigma_for
    from attacks.gradient._snr import auc_ceiling
    from privkit.finetune.replay import lab_of
    from privkit.finetune.view import owned

    if uploads.dimension is not None:
        raise InputError("--effective-dimension and --run both say what gradients are like; give one.")
    run = _one(uploads.run or Path())
    lab = lab_of(run)
    batch = lab.config.batch if uploads.batch is None else uploads.batch
    found = {
        round: sigma_for(passes, auc=target, batch_size=batch, clip_norm=uploads.clip_norm)
        for round, passes in owned(run, lab=lab)
    }
    sigma, told = max(found.values(), key=lambda pair: (pair[0], pair[1].auc))
    return Planned(
        sigma=sigma,
        predicted_auc=told.auc,
        auc_ceiling=auc_ceiling(sigma=sigma) if sigma else 1.0,
        batch=batch,
        effective_dimension=told.effective_dimension if math.isfinite(told.effective_dimension) else None,
        rounds=tuple(found),
    )


def _one(folder: Path) -> "Run":
    """Return the one run of a folder; several differ in what they train, and so in their gradients."""
    from privkit import store

    if not folder.is_dir():
        raise InputError(f"{folder} does not exist; give a run of the gradient lab.")
    runs = store.find(folder)
    if len(runs) != 1:
        raise InputError(f"{folder} holds {len(runs)} runs; give one of them, such as {runs[0].path}.")
    return runs[0]


def _spent(sigma: float, steps: Steps) -> "Spent | None":
    """Return what the noise promises over all steps; ``None`` without noise, or where no rate is known."""
    from accountant import subsampled

    if steps.sampling_rate is None or not sigma:
        return None
    return subsampled.epsilon(
        noise_multiplier=sigma,
        sampling_rate=steps.sampling_rate,
        steps=steps.count,
        delta=steps.delta,
    )


def _known(found: Planned) -> str:
    """Return in words what the noise was told from."""
    if found.effective_dimension is None and not found.rounds:
        return "any gradients, other records hiding nothing"
    dimension = found.effective_dimension
    shown = "" if dimension is None else f", effective dimension {dimension:.4g} at this noise"
    return f"batches of {found.batch:,}{shown}"


def _lines(found: Planned, steps: Steps, spent: "Spent | None") -> Iterator[str]:
    from accountant.contract import Relation

    relation = Relation.ADD_REMOVE.value
    sigma = rounded_up(found.sigma) if found.sigma else "0"
    yield f"sigma {sigma} leaves the matched filter on one upload at AUC {found.predicted_auc:.3f} ({_known(found)})"
    if not found.sigma:
        yield "the batch alone hides a record that well from this attack; without noise nothing is promised"
        return
    yield f"ceiling {found.auc_ceiling:.3f}: the AUC that no attack on one upload exceeds, {relation}"
    if spent is not None:
        plural = "step" if steps.count == 1 else "steps"
        yield (
            f"epsilon {spent.epsilon:.6g} at delta {steps.delta:g} over {steps.count:,} {plural} on samples of rate "
            f"{steps.sampling_rate:g}, {relation}, {spent.bound.of(spent.method)}"
        )
