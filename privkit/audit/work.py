"""One cell on its way through the audit: what was released, what that allows, and what was found so far."""

import math
from dataclasses import dataclass, field
from functools import cached_property

from accountant.claims import curve
from accountant.contract import Contract, Query, Relation
from accountant.cost import total
from accountant.events import Event, NonPrivate, leaves
from accountant.joint import gaussian_equivalent
from accountant.moments import moments_sensitivity
from accountant.tradeoff import AbstractCurve, GaussianCurve
from attacks._base import AbstractAttack
from attacks.statistics.residuals import Squares
from privkit.audit import taken
from privkit.audit._tuned import batch_ceiling, tunes
from privkit.audit.cells import Cell
from privkit.audit.promised import kept_filter, promised, worst_event
from privkit.audit.scored import RunView
from privkit.audit.white_box import Check
from privkit.exposure import BatchRecords
from privkit.measured import Measured
from privkit.transcript import Transcript
from reports.findings import Inversion, Promised, Taken


@dataclass(eq=False)
class Work:
    """One cell on its way through the audit."""

    cell: Cell
    views: list[RunView]
    measured: list[Measured]
    found: list[Taken] = field(default_factory=list)
    inversions: list[Inversion] = field(default_factory=list)
    canaries: taken.Judged | None = None
    p_values: dict[str, float | None] = field(default_factory=dict)
    noise: Squares | None = None
    checks: dict[str, Check] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    shortest: float | None = None

    @cached_property
    def transcripts(self) -> list[Transcript]:
        """Return what each run released."""
        return [view.transcript for view in self.views]

    @cached_property
    def event(self) -> Event | None:
        """Return what the client that spends most released."""
        return worst_event(self.transcripts, delta=self.cell.delta)

    @cached_property
    def promised(self) -> Promised | None:
        """Return the claim; ``None`` when nothing was released."""
        return None if self.event is None else promised(self.cell, self.event, self.transcripts)

    @cached_property
    def limit(self) -> AbstractCurve | None:
        """Return what the mechanism alone allows, whatever its inputs depend on."""
        return ceiling(self.cell, self.event)

    @cached_property
    def _limit_of_a_batch(self) -> AbstractCurve | None:
        return batch_ceiling(self.transcripts)

    def limit_of(self, attack: AbstractAttack) -> AbstractCurve | None:
        """Return what the mechanism allows an attack to tell of the candidates that it is asked about."""
        asked = (view.questions.get(attack.asks_about) for view in self.views)
        return self._limit_of_a_batch if any(isinstance(a, BatchRecords) for a in asked) else self.limit

    @property
    def mu(self) -> float | None:
        """Return the claimed mu of all Gaussian noise, which is what canaries test; ``None`` without any."""
        return total(self.event).mu or None if self.limit is not None and self.event is not None else None

    @property
    def mu_of_ceiling(self) -> float | None:
        """Return a mu whose ceiling is nowhere below the proof's: pure parts next to the noise raise it."""
        if self.mu is None or self.event is None:
            return None
        kept = kept_filter(self.cell, self.event)
        if kept is not None:
            return kept.mu
        pure = dict(total(self.event).pure)
        return math.hypot(self.mu, gaussian_equivalent(pure)) if pure else self.mu

    @property
    def canary_share(self) -> float:
        """Return how much of the claimed mu canaries can show: of moments, they move sums and counts, no squares."""
        parts = () if self.event is None else leaves(self.event)
        return min((moved_by_canaries(leaf.contract) for leaf, _ in parts), default=1.0)

    @property
    def plants(self) -> bool:
        """Return whether canaries can be planted in such runs."""
        return not any(tunes(view.run.info.config) for view in self.views)

    @property
    def not_gaussian(self) -> str:
        """Return why no trade-off curve of the releases is Gaussian, in words; nothing where it may be."""
        return "" if self.mu is not None else "there is no Gaussian noise, so no trade-off curve is Gaussian"

    @property
    def clip_norm(self) -> float | None:
        """Return the largest clip norm that a contract declares."""
        parts = () if self.event is None else leaves(self.event)
        return max((n for leaf, _ in parts if (n := leaf.contract.clip_norm) is not None), default=None)


def moved_by_canaries(contract: Contract) -> float:
    """Return how far the canaries of a claim's relation move what noise was put on, as a share of its sensitivity."""
    if contract.query is not Query.MOMENTS or not contract.weights:
        return 1.0
    count, vector, *_ = contract.weights
    replaced = contract.relation in (Relation.REPLACE_SAME_LABEL, Relation.REPLACE_ANY_LABEL)
    moved = 2 * vector if replaced else math.hypot(count, vector)
    return moved / moments_sensitivity(contract.weights, contract.relation)


def ceiling(cell: Cell, event: Event | None) -> AbstractCurve | None:
    """Return what a mechanism allows; ``None`` where nothing was released, or something without noise."""
    if event is None or any(isinstance(leaf, NonPrivate) for leaf, _ in leaves(event)):
        return None
    kept = kept_filter(cell, event)
    return curve(event) if kept is None else GaussianCurve(mu=kept.mu)
