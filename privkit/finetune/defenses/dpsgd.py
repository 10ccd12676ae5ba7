"""DP-SGD: every record's gradient is clipped, and noise is added to the sum, by Opacus."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from accountant.contract import Contract, Counts, Query, Relation
from accountant.events import Event, Gaussian, Repeated, SubsampledGaussian
from privkit.finetune import batches
from privkit.finetune.defenses._base import AbstractTuningDefense, contract
from privkit.finetune.defenses.fisguard import Fisguard
from privkit.finetune.terms import Sampling, Terms

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class Dpsgd(AbstractTuningDefense):
    """Noise of standard deviation ``noise_multiplier * clip_norm`` on each client's sum of clipped gradients.

    Sampling ``poisson`` is what amplification needs: a step is priced as a subsampled Gaussian mechanism for adding or
    removing a record; to replace one moves the sum twice as far (mu is 2 / sigma without sampling). Batches of a fixed
    size are priced for replacing a record, and without amplification. The step's own ``clip`` is not applied. Numbers
    of records are taken as public, as always with DP-SGD: rates and the server's weights follow from them.
    """

    citation: ClassVar[str] = "abadi2016deep, yousefpour2021opacus"
    varied = "noise_multiplier"

    noise_multiplier: float = Field(
        default=1.0,
        gt=0,
        description="noise standard deviation / clip_norm; FISGuard sweeps 0.1, 0.25, 0.5, 1, 2",
    )
    clip_norm: float = Field(default=1.0, gt=0, description="largest norm of one record's gradient")

    fisguard: Fisguard | None = Field(
        default=None,
        description="fix the inputs of all maps first, as that defense does; null: train them whole",
    )

    def prepare(self, model: "Tuned", public: "Public", *, seed: int) -> None:
        if self.fisguard is not None:
            self.fisguard.prepare(model, public, seed=seed)

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        from privkit.finetune.defenses._dpsgd import DpsgdGuard

        return DpsgdGuard(terms, noise_multiplier=self.noise_multiplier, clip_norm=self.clip_norm, seed=seed)

    def event(self, terms: Terms, *, records: int) -> Event:
        """Return the cost of a round's steps; all else that is sent follows from their noisy sums."""
        step = self._poisson(terms, records) if terms.sampling is Sampling.POISSON else self._fixed(terms)
        return step if terms.local_steps == 1 else Repeated(event=step, count=terms.local_steps)

    def _poisson(self, terms: Terms, records: int) -> SubsampledGaussian:
        return SubsampledGaussian(
            noise_multiplier=self.noise_multiplier,
            sampling_rate=batches.rate(terms, records),
            contract=self._contract(terms, Relation.ADD_REMOVE, Query.RECORD_SUM),
        )

    def _fixed(self, terms: Terms) -> Gaussian:
        """Return the cost of a batch of fixed size: who is replaced may be in it, and the sum then moves by 2 clips.

        Which records are drawn also changes when one is added, so nothing is stated for that: the query is left open.
        """
        made = self._contract(terms, Relation.REPLACE_ANY_LABEL, None)
        return Gaussian(noise_multiplier=self.noise_multiplier / 2, contract=made)

    def _contract(self, terms: Terms, relation: Relation, query: Query | None) -> Contract:
        made = replace(contract(terms), relation=relation, query=query, clip_norm=self.clip_norm)
        # replacing a record leaves every count as it is
        return replace(made, counts=Counts.NOT_USED) if relation is Relation.REPLACE_ANY_LABEL else made
