"""Who takes part in which round: drawn from seed and round alone, so that everybody knows it beforehand."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from privkit.errors import InputError
from privkit.methods._base import Sends
from privkit.noise import Purpose, keyed
from privkit.study import Plan


@dataclass(frozen=True, kw_only=True)
class Attendance:
    """The clients that take part in the rounds of one run.

    A round of the papers (download, train, upload) is cut before its upload here. So those who send trained weights in
    a round are those who took part in the one before. Prototypes are made anew of what a client has: whoever takes part
    in a round sends in that very round.

    Nothing of a record is in the draw, and no amplification of privacy is claimed for it: the server sees who sends.

    Attributes:
        clients: number of clients, M.
        present: how many of them take part in a round.
        seed: of the run.
        later: whether those who trained in a round send at the beginning of the next one.
    """

    clients: int
    present: int
    seed: int
    later: bool

    @classmethod
    def of(cls, plan: Plan, *, clients: int) -> "Attendance":
        """Return who takes part in the rounds of a run.

        Raises:
            InputError: more clients are to take part than there are.
        """
        wanted = plan.config.participation
        if isinstance(wanted, int) and wanted > clients:
            raise InputError(
                f"participation={wanted}, and there are {clients} clients; give at most as many, or a share."
            )
        share = wanted if isinstance(wanted, float) else 1.0
        present = wanted if isinstance(wanted, int) else max(1, int(share * clients + 0.5))
        later = plan.config.method.sends is Sends.WEIGHTS
        return cls(clients=clients, present=present, seed=plan.seed, later=later)

    def trainers(self, round: int) -> Int64[np.ndarray, " present"]:
        """Return the clients that get an answer in a round and train, ascending."""
        if self.present == self.clients:
            return np.arange(self.clients)
        rng = keyed(self.seed, Purpose.PARTICIPATION, round=round)
        return np.sort(rng.permutation(self.clients)[: self.present])

    def senders(self, round: int) -> Int64[np.ndarray, " present"]:
        """Return the clients that send in a round, ascending; in the first one, nobody has trained before."""
        return self.trainers(max(0, round - 1) if self.later else round)

    def ever_sends(self, rounds: int) -> Bool[np.ndarray, " clients"]:
        """Return which clients send in at least one of the first rounds."""
        found = np.zeros(self.clients, dtype=bool)
        for round in range(rounds):
            found[self.senders(round)] = True
        return found

    def trained(self, client: int, rounds: int) -> int:
        """Return in how many of the first rounds a client trained."""
        return sum(int(client in self.trainers(round)) for round in range(rounds))
