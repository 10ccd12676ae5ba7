"""``privkit calibrate dpsgd``: how much noise steps on Poisson samples need."""

import typer

from accountant.rounded import rounded_up


def dpsgd(
    epsilon: float = typer.Option(..., "--epsilon", help="Total privacy loss, in nats, above 0."),
    delta: float = typer.Option(1e-5, "--delta", help="Total probability of failure, in (0, 1)."),
    sampling_rate: float = typer.Option(
        ..., "--sampling-rate", help="Probability in (0, 1] with which a record joins a step."
    ),
    rounds: int = typer.Option(1, "--rounds", "--steps", help="Steps, at least 1."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Noise of DP-SGD.

    The noise multiplier sigma is its standard deviation / the clip norm of one record's gradient.
    """
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
