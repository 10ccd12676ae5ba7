"""What attacks share that ask a matched filter: how its covariance is estimated, and what to expect of it."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks.gradient._base import GradientAttack, gradient_view
from attacks.gradient._filters import Estimator, filtered
from attacks.gradient._plan import LEAST_RECORDS, predicted
from attacks.gradient._seen import Seen, seen
from privkit.exposure import BatchRecords
from privkit.transcript import Records, ServerView


class FilterAttack(GradientAttack):
    """Standardised inner product of a candidate's gradient with an upload, in the metric of public gradients."""

    estimator: Estimator = Field(
        default="both",
        description="of the covariance: kronecker (two small factors per map), dual (public gradients), half of each",
    )
    ridge: float | None = Field(
        default=None,
        gt=0,
        description="what is added to the covariance: a share of the mean eigenvalue of each factor, its largest left "
        "out (0.1 by default), or with dual of the largest of all (1e-5)",
    )

    @property
    def variant(self) -> tuple[str, ...]:
        """Return the estimator if it is not the default."""
        return () if self.estimator == "both" else (self.estimator,)

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        return filtered(self.shown(seen), self.estimator, ridge=self.ridge)

    def expected(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"] | None:
        """Return the AUC to expect on the upload that each candidate is asked about (:mod:`attacks.gradient._plan`).

        Nothing that was sent is read but its event and the names of its maps. Not a number where it is not known: a
        delta has no known length, a few public records show too little, and clients with dropout make other passes than
        the attacker. ``None`` where rounds are fused.
        """
        if not isinstance(candidates, BatchRecords):
            return None
        found_N = np.full(len(candidates), np.nan)
        if not gradient_view(view).repeatable:
            return found_N
        for upload in seen(gradient_view(view), candidates):
            shown = self.shown(upload)
            if shown.is_gradient and len(shown.owned.losses) >= LEAST_RECORDS:
                found_N[upload.rows] = self._of(shown)
        return found_N

    def _of(self, shown: Seen) -> float:
        noise, names = shown.noise, tuple(shown.sent)

        def told() -> float:
            return predicted(
                shown.owned,
                batch_size=shown.batch_size,
                noise=noise,
                estimator=self.estimator,
                ridge=self.ridge,
                names=names,
                rounding=shown.rounding_of(_like_an_upload(shown, names)),
            ).auc

        return shown.once(("expected", noise, names, shown.batch_size), told)

    @abstractmethod
    def shown(self, seen: Seen) -> Seen:
        """Return what it looks at of an upload."""


def _like_an_upload(shown: Seen, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the mean gradient of as many public records as are behind an upload, by map."""
    return {
        name: shown.owned.traces[name].gradients()[: shown.batch_size].mean(0, dtype=np.float64)
        for name in names
    }
