r"""FedMIA: is the candidate's gradient more like its client's upload than like those of all other clients?

.. math:: \text{score}(x) = \frac{\cos(G_c, g_x) - \mu}{s}

with mean and standard deviation of the cosines with the other clients' uploads of that round, those more than three
standard deviations above the mean left out. The published score is this number's normal probability, which makes large
ones equal; it ranks the same.

Source: Zhu et al. (2025), "FedMIA: an effective membership inference attack exploiting 'all for one' principle in
federated learning".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError, ThreatModel
from attacks.gradient._base import LABEL, GradientAttack, server
from attacks.gradient._inner import Sent, cosines
from attacks.gradient._seen import Seen, pulled, sent_matrices, weights_of

_LEAST_OTHERS, _SPREADS = 2, 3.0


class Fedmia(GradientAttack):
    """Standard deviations by which a candidate's cosine with its client is above those with all others."""

    citation: ClassVar[str] = "zhu2025fedmia"
    threat: ClassVar[ThreatModel] = server(LABEL, "uploads of other clients in the same round")
    family = "rival"

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        others = _of_others(seen)
        if len(others) < _LEAST_OTHERS:
            raise NotApplicableError(
                f"{len(others)} other clients sent the same maps in round {seen.release.round}; a spread needs 2"
            )
        own_N, *others_KN = cosines(seen.candidates, [seen.sent, *others]).T
        mean_N, std_N = _robust(np.stack(others_KN))
        above_N = own_N - mean_N
        return np.divide(above_N, std_N, out=np.zeros_like(above_N), where=std_N > 0)


def _of_others(seen: Seen) -> list[Sent]:
    """Return the uploads of all other clients in the same round that hold the same maps."""
    found = []
    for release in seen.view.releases:
        if release.round != seen.release.round or release.client == seen.release.client:
            continue
        sent = sent_matrices(seen.view, release)
        if all(name in sent and sent[name].shape == own.shape for name, own in seen.sent.items()):
            same = {name: sent[name] for name in seen.sent}
            pull = pulled(seen.view, release, same, seen.candidates)
            found.append(pull.without(same, weights_of(seen.view, release)))
    return found


def _robust(
    values_KN: Float64[np.ndarray, "K N"],
) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Return mean and standard deviation without what is more than three of these above the mean."""
    kept_KN = values_KN <= values_KN.mean(0) + _SPREADS * values_KN.std(0)
    count_N = kept_KN.sum(0)
    mean_N = np.where(kept_KN, values_KN, 0.0).sum(0) / count_N
    squares_N = np.where(kept_KN, (values_KN - mean_N) ** 2, 0.0).sum(0)
    return mean_N, np.sqrt(squares_N / count_N)
