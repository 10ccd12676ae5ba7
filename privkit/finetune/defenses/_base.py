"""What every defense of a tuned transformer says: what it changes, and what one upload costs."""

from typing import TYPE_CHECKING, ClassVar

from accountant.contract import Contract, Counts, DependsOn
from accountant.events import Event, NonPrivate
from privkit.finetune.terms import Aggregation, Sampling, Terms
from privkit.plug import Plugin

if TYPE_CHECKING:
    from privkit.finetune.guard import Guard
    from privkit.finetune.model import Tuned
    from privkit.finetune.public import Public


class AbstractTuningDefense(Plugin):
    """Any of three roles: it changes the model before training, the gradient of a batch, or what is sent of it."""

    varied: ClassVar[str] = ""
    """Name of the setting, a number, that says how strong it is; figures have it on their axis."""

    def refuse_terms(self, terms: Terms) -> None:
        """Raise ValueError if it makes no sense with how clients train."""

    def prepare(self, model: "Tuned", public: "Public", *, seed: int) -> None:
        """Change a model before anybody trains it.

        Args:
            model: as it is built; changed in place.
            public: records that the server owns.
            seed: of the run.

        Raises:
            InputError: the model or the public records do not allow it.
        """

    def guard(self, model: "Tuned", terms: Terms, public: "Public", *, clients: int, seed: int) -> "Guard":
        """Return what it does in training; it may remember something of each client."""
        from privkit.finetune.guard import Guard

        return Guard(terms)

    def event(self, terms: Terms, *, records: int) -> Event:
        """Return what one upload of a client with so many records costs."""
        return NonPrivate(contract=contract(terms))


def contract(terms: Terms) -> Contract:
    """Return what is true of every upload: slopes and inputs depend on weights that everybody knows."""
    sampled = terms.sampling is Sampling.POISSON  # at a rate that follows from the number of records
    counted = sampled or terms.aggregation is Aggregation.SIZE
    return Contract(
        encoder=DependsOn.PAST_OUTPUTS,
        assignment=DependsOn.PUBLIC,  # there is one sum, and every record is in it
        counts=Counts.PUBLIC if counted else Counts.NOT_USED,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
