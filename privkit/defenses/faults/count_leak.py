"""A noise scale that tells how many records there are, under a claim that hides it."""

from dataclasses import replace

from accountant.contract import Contract, Counts, Query, Relation
from privkit.defenses.faults._base import AbstractFault


class CountLeak(AbstractFault):
    """Means with noise ``sigma 2R/n``, no count beside them, claimed as if they were sums whose noise is fixed."""

    def contract(self, honest: Contract) -> Contract:
        return replace(
            honest,
            relation=Relation.REPLACE_ANY_LABEL,
            query=Query.CLASS_SUMS,
            counts=Counts.NOT_USED,
            class_counts=(),
        )

    @property
    def sends_counts(self) -> bool:
        return False
