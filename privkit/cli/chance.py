"""``privkit chance``: what attacks without any skill reach, by the number of candidates."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from attacks.statistics.chance import Chance
    from reports.table import Table


def chance(
    cells: list[str] = typer.Option(
        ..., "--cells", help="Members x non-members, as 100x100; several with commas between."
    ),
    fpr: str = typer.Option("0.01", "--fpr", help="False-positive rate, in (0, 1)."),
    attacks: int = typer.Option(1, "--attacks", min=1, help="Attacks that are tried on the same candidates."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """Show what attacks without any skill reach. The best of them exceeds each limit in 5 % of cases."""
    from attacks.statistics.chance import chance as by_chance
    from attacks.statistics.tpr import exact_rate
    from privkit.cli.listed import names
    from reports import terminal

    exact_rate(fpr)
    sizes = [_size(text) for text in names(cells, option="--cells", kind="number of candidates")]
    table = _table([by_chance(m, n, fpr=fpr, attacks=attacks) for m, n in sizes], fpr, attacks)
    if as_json:
        typer.echo(table.json())
        return
    console = terminal.console()
    console.print(terminal.fitting("Without any skill", table, console), "")
    for note in table.notes:
        console.print(note, highlight=False)


def _size(text: str) -> tuple[int, int]:
    from privkit.errors import InputError

    members, _, others = text.partition("x")
    if not (members.strip().isdecimal() and others.strip().isdecimal() and int(members) and int(others)):
        raise InputError(
            f"--cells {text!r} is no number of candidates; write members x non-members, as 100x100."
        )
    return int(members), int(others)


def _table(found: "list[Chance]", fpr: str, attacks: int) -> "Table":
    from dataclasses import asdict

    from reports import numbers
    from reports.table import Column, Table

    columns = {
        "auc_limit": "AUC up to",
        "tpr": f"TPR at FPR {fpr}",
        "tpr_limit": "up to",
        "balanced_accuracy": "best balanced accuracy",
        "balanced_accuracy_limit": "up to",
        "f1": "best F1",
    }
    of = "it exceeds" if attacks == 1 else f"the best of {attacks} independent attacks exceeds"
    return Table(
        columns=(
            Column(key="n_members", title="members", right=True),
            Column(key="n_non_members", title="non-members", right=True),
            *(Column(key=key, title=title, show=numbers.rate, right=True) for key, title in columns.items()),
        ),
        rows=[asdict(one) for one in found],
        notes=(
            f"Means of a score that knows nothing (of the AUC: 0.5), and what {of} in 5 % of cases only; for "
            "candidates that are independent of each other, and scores without ties.",
        ),
    )
