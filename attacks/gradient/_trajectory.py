"""What attacks share that look at how a candidate's loss moved over rounds, and at no gradient."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, NotApplicableError
from attacks.gradient._base import gradient_view
from attacks.gradient._seen import losses_of
from privkit.exposure import BatchRecords
from privkit.transcript import Records, ServerView


class TrajectoryAttack(AbstractAttack):
    """Scores candidates by their losses at the weights of every round and after the last one."""

    reads: ClassVar[Literal["prototypes", "weights", "gradients"]] = "gradients"

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        if not len(candidates):
            return np.zeros(0)
        return self.of_losses(losses_of(gradient_view(view), candidates), candidates)

    @abstractmethod
    def of_losses(
        self, losses_NR: Float64[np.ndarray, "N R"], candidates: Records
    ) -> Float64[np.ndarray, " N"]:
        """Return a score of each candidate from its losses, one column per round and one after the last."""


class StepAttack(TrajectoryAttack):
    """Compares a candidate's loss before and after one step of the model that it may have been part of.

    A record that is asked about in one round is scored by that step; one that is asked about in all, by the largest.
    """

    def of_losses(
        self, losses_NR: Float64[np.ndarray, "N R"], candidates: Records
    ) -> Float64[np.ndarray, " N"]:
        columns = losses_NR.shape[1]
        if columns < 2:
            raise NotApplicableError("losses are known at one point only; a step needs two")
        steps_NT = self.of_step(losses_NR[:, :-1], losses_NR[:, 1:])
        if not isinstance(candidates, BatchRecords):
            return steps_NT.max(1)
        beyond = candidates.rounds[(candidates.rounds < 0) | (candidates.rounds >= columns - 1)]
        if len(beyond):
            raise NotApplicableError(
                f"round {int(beyond[0])} is asked about, and losses are known after {columns - 1} rounds"
            )
        return steps_NT[np.arange(len(candidates)), candidates.rounds]

    @abstractmethod
    def of_step(
        self, before_NT: Float64[np.ndarray, "N T"], after_NT: Float64[np.ndarray, "N T"]
    ) -> Float64[np.ndarray, "N T"]:
        """Return a score of each step from the loss before and after it."""
