"""Whether groups of coordinates were chosen as they are claimed to be: at random, or with noise on every score."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64

from accountant.contract import DependsOn
from accountant.events import GroupGaussian, LaplaceTopK, leaves
from attacks.statistics.draws import guesses_hit, uniform_p_value
from attacks.statistics.selected import Selection, selection_p_value
from privkit import plug
from privkit.audit.cells import Cell
from privkit.audit.left import Left
from privkit.audit.white_box import Check, Seen
from privkit.defenses._base import AbstractReleaseDefense
from privkit.defenses.vpp import GroupwiseMeans
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.partitions._base import AbstractPartition
from privkit.partitions._scores import discriminability
from privkit.partitions._selection import AbstractSelection
from privkit.partitions.random import Random

_MOST = 100  # selections whose probability is computed


def choices(cell: Cell, runs: Sequence[Seen]) -> dict[str, Check]:
    """Return the check of how a cell's groups were chosen, by name, where its configuration says how."""
    match _partition(cell):
        case Random():
            sets = [one.hidden.groups == 0 for run in runs for one in run.left if len(one.groups.norms) > 1]
            return {"choice of groups": random_groups(sets)} if len(sets) > 1 else {}
        case AbstractSelection() as partition:
            made = [selection for run in runs for selection in _selections(run, partition)]
            return {"noise of the choice": noisy_scores(made[:_MOST])} if made else {}
        case _:
            return {}


def random_groups(sets: Sequence[np.ndarray]) -> Check:
    """Check that groups which cost nothing because they are random were drawn at random.

    Args:
        sets: which coordinates were in the informative group, in the order of drawing, at least two.
    """
    hits, chance = guesses_hit(sets)
    says = (
        f"the groups of coordinates are not drawn at random: guesses from earlier groups hit {hits} coordinates, "
        f"{chance:.1f} by chance"
    )
    return Check(uniform_p_value(sets), says)


def noisy_scores(made: Sequence[Selection]) -> Check:
    """Check that groups which were chosen by scores with Laplace noise were chosen with enough of it."""
    says = f"the groups of coordinates follow the true scores closer than noise of scale {made[0].scale:.4g} lets them"
    return Check(selection_p_value(made), says)


def _partition(cell: Cell) -> AbstractPartition | None:
    try:
        defense = plug.build("privkit.defenses", cell.first.info.config.get("defense"))
    except InputError:
        return None  # recorded by other code, which may describe itself as it likes
    if not isinstance(defense, AbstractReleaseDefense):
        return None
    mechanism = defense.mechanism(rounds=cell.first.info.rounds)
    return mechanism.partition if isinstance(mechanism, GroupwiseMeans) else None


def _selections(run: Seen, partition: AbstractSelection) -> Iterator[Selection]:
    """Yield every selection with Laplace noise whose scores the auditor can compute."""
    known: dict[int, Float64[np.ndarray, " d"] | None] = {}
    for one in run.left:
        leaf = next((leaf for leaf, _ in leaves(one.release.event) if isinstance(leaf, LaplaceTopK)), None)
        if leaf is None:
            continue
        client = one.release.client
        if client not in known:
            known[client] = _scores(run, one, partition)
        scores_d = known[client]
        if scores_d is not None:
            bounded_d = np.minimum(scores_d, leaf.score_bound)
            yield Selection(bounded_d, one.hidden.groups == 0, leaf.scale)


def _scores(run: Seen, one: Left, partition: AbstractSelection) -> Float64[np.ndarray, " d"] | None:
    """Return a client's true scores; ``None`` unless its encoder is public and all of its records are known."""
    asked = run.view.questions["records"]
    contract = next(leaf.contract for leaf, _ in leaves(one.release.event) if isinstance(leaf, GroupGaussian))
    if asked is None or contract.encoder is not DependsOn.PUBLIC:
        return None
    mine = asked.where(run.truth.members).of(one.release.client)
    if tuple(np.unique(mine.labels, return_counts=True)[1].tolist()) != contract.class_counts:
        return None
    own = Embeddings(vectors=mine.vectors.astype(np.float64), labels=mine.labels, encoder=DependsOn.PUBLIC)
    return discriminability(
        own, stabiliser=partition.stabiliser, stabiliser_of_median=partition.stabiliser_of_median
    )
