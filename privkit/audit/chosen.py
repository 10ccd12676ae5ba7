"""Whether groups of coordinates that cost nothing because they are random were drawn at random."""

from collections.abc import Sequence

from privkit import plug
from privkit.audit.cells import Cell
from privkit.audit.white_box import Check, Seen, random_groups
from privkit.defenses._base import AbstractReleaseDefense
from privkit.defenses.vpp import GroupwiseMeans
from privkit.errors import InputError
from privkit.partitions.random import Random


def choices(cell: Cell, runs: Sequence[Seen]) -> dict[str, Check]:
    """Return the check of a cell whose configuration says that its groups are random; nothing for another one."""
    if not _claims_random_groups(cell):
        return {}
    sets = [one.hidden.groups == 0 for run in runs for one in run.left if len(one.groups.norms) > 1]
    return {"choice of groups": random_groups(sets)} if len(sets) > 1 else {}


def _claims_random_groups(cell: Cell) -> bool:
    settings = cell.first.info.config.get("defense")
    try:
        defense = plug.build("privkit.defenses", settings)
    except InputError:
        return False  # recorded by other code, which may describe itself as it likes
    if not isinstance(defense, AbstractReleaseDefense):
        return False
    mechanism = defense.mechanism(rounds=cell.first.info.rounds)
    return isinstance(mechanism, GroupwiseMeans) and isinstance(mechanism.partition, Random)
