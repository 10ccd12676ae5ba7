"""A claim about a record of any other label, with the noise that hides one of the same label."""

from dataclasses import replace

from accountant.contract import Contract, Relation
from privkit.defenses.faults._base import AbstractFault


class AnyLabel(AbstractFault):
    """Noise on each class as if a record moved one class only: with its label, it moves two."""

    def contract(self, honest: Contract) -> Contract:
        # no query, so the number is taken for the relation that it is stated for
        return replace(honest, relation=Relation.REPLACE_ANY_LABEL, query=None)
