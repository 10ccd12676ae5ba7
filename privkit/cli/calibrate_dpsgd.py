"""``privkit calibrate dpsgd``: how much noise steps on Poisson samples need, for an epsilon or for an attack's AUC."""

from pathlib import Path

import typer

from accountant.rounded import rounded_up
from privkit.cli import calibrate_auc
from privkit.errors import InputError


def dpsgd(
    epsilon: float | None = typer.Option(
        None, "--epsilon", help="Target: total privacy loss, in nats, above 0."
    ),
    target_auc: float | None = typer.Option(
        None, "--target-auc", help="Target: AUC of the best linear attack on one upload, in (0.5, 1)."
    ),
    delta: float = typer.Option(1e-5, "--delta", help="Total probability of failure, in (0, 1)."),
    sampling_rate: float | None = typer.Option(
        None, "--sampling-rate", help="Probability in (0, 1] with which a record joins a step."
    ),
    rounds: int = typer.Option(1, "--rounds", "--steps", help="Steps, at least 1."),
    batch: int | None = typer.Option(
        None, "--batch", help="For --target-auc: records behind an upload; that of --run by default."
    ),
    dimension: float | None = typer.Option(
        None,
        "--effective-dimension",
        help="For --target-auc: directions that gradients of records differ in; any without it and --run.",
    ),
    run: Path | None = typer.Option(
        None,
        "--run",
        help="For --target-auc: a run of the gradient lab, whose attacker's records are measured.",
    ),
    clip_norm: float = typer.Option(
        1.0, "--clip-norm", help="For --run: largest norm of one record's gradient, above 0."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Noise of DP-SGD.

    The noise multiplier sigma is its standard deviation / the clip norm of one record's gradient.
    """
    if (epsilon is None) == (target_auc is None):
        given = "neither" if epsilon is None else "both"
        raise InputError(f"{given} of --epsilon and --target-auc given as target; give one.")
    if target_auc is not None:
        uploads = calibrate_auc.Uploads(batch=batch, dimension=dimension, run=run, clip_norm=clip_norm)
        steps = calibrate_auc.Steps(count=rounds, sampling_rate=sampling_rate, delta=delta)
        calibrate_auc.show(target_auc, uploads, steps, as_json=as_json)
        return
    odd = {"--batch": batch, "--effective-dimension": dimension, "--run": run}
    if name := next((name for name, value in odd.items() if value is not None), None):
        raise InputError(f"{name} says nothing about an epsilon; give it with --target-auc.")
    if epsilon is None or sampling_rate is None:
        raise InputError(
            "--epsilon is not known without --sampling-rate; give it, 1 for steps on all records."
        )
    _for_epsilon(epsilon, delta=delta, sampling_rate=sampling_rate, rounds=rounds, as_json=as_json)


def _for_epsilon(epsilon: float, *, delta: float, sampling_rate: float, rounds: int, as_json: bool) -> None:
    from accountant import subsampled
    from accountant.comparison import refuse_huge
    from accountant.contract import Relation

    refuse_huge(epsilon)

    setting = {"sampling_rate": sampling_rate, "steps": rounds, "delta": delta}
    sigma = subsampled.sigma_from_epsilon(epsilon=epsilon, **setting)
    unsampled = subsampled.sigma_from_epsilon(epsilon=epsilon, **{**setting, "sampling_rate": 1.0})
    spent = subsampled.epsilon(noise_multiplier=sigma, **setting)
    relation = Relation.ADD_REMOVE.value
    if as_json:
        import json

        document = {"sigma": sigma, "epsilon": epsilon, **setting, "relation": relation}
        document |= {"spent": spent.epsilon, "method": spent.method, "bound": spent.bound.value}
        typer.echo(json.dumps(document | {"sigma_without_sampling": unsampled}, allow_nan=False))
        return
    plural = "step" if rounds == 1 else "steps"
    typer.echo(f"sigma {rounded_up(sigma)} for {rounds:,} {plural} on samples of rate {sampling_rate:g}")
    typer.echo(f"epsilon {spent.epsilon:.6g} at delta {delta:g}, {relation}, {spent.bound.of(spent.method)}")
    typer.echo(f"sigma {rounded_up(unsampled)} if the samples were not secret")
