r"""A selection that costs nothing: the coordinates in which a client's own earlier messages agree.

The noise of two rounds is independent, what lies beneath it is not. With ``x`` a client's message of one round, each
class minus the mean over classes, and ``a`` the precision of its noise on a coordinate, up to a common factor,

.. math:: S_j = \frac{\sum_{s \ne t} a_{sj} a_{tj} \sum_c x_{scj} x_{tcj}}{\sum_{s \ne t} a_{sj} a_{tj}}
              = \frac{\sum_c (\sum_t a_{tj} x_{tcj})^2 - \sum_t a_{tj}^2 \sum_c x_{tcj}^2}
                     {(\sum_t a_{tj})^2 - \sum_t a_{tj}^2}

estimates the variance between classes without the noise's own: squares of one round are left out.

Source: ours; corrections to the accounting analysis, zero-budget partition (when it is valid)
"""

import numpy as np
from jaxtyping import Bool, Float64

from accountant.events import Leaf
from accountant.groupwise import Allocation
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory, largest
from privkit.release import Prototypes

_FEWEST = 2  # rounds that a covariance over rounds needs


class History(AbstractPartition):
    """The k coordinates whose noisy class means vary most over classes, alike in several rounds.

    The first two rounds draw the group at random. From then on it is a function of messages that were sent, whose
    cost is in the ledger, so choosing it is post-processing and costs nothing. That needs the cost of a release not
    to depend on which coordinates are in the group, which holds for fixed sizes, and the same group for clip and
    noise. Record counts, clean means and accuracies are never read.
    """

    def choose(
        self,
        embeddings: Embeddings,
        *,
        size: int,
        cost: Leaf | None,
        public: Embeddings | None,
        memory: Memory,
        noise: Noise,
    ) -> Bool[np.ndarray, " d"]:
        if not memory or memory["rounds"][0] < _FEWEST:
            return largest(noise.laplace((embeddings.vectors.shape[1],)), size)
        return largest(_agreement(memory), size)

    def remember(self, memory: Memory, payload: Prototypes, informative: Bool[np.ndarray, " d"]) -> Memory:
        sent_Pd = payload.vectors.astype(np.float64)
        x_Pd = sent_Pd - sent_Pd.mean(0)
        a_d = _precision(informative)
        now = {
            "labels": payload.labels,
            "rounds": np.ones(1),
            "precision": a_d,
            "precision_squared": a_d**2,
            "sum": a_d * x_Pd,
            "squares": a_d**2 * (x_Pd**2).sum(0),
        }
        if not memory or not np.array_equal(memory["labels"], payload.labels):
            return now
        return {**{name: memory[name] + value for name, value in now.items()}, "labels": payload.labels}


def _agreement(memory: Memory) -> Float64[np.ndarray, " d"]:
    """Return S of each coordinate, in squared embedding units; it may be negative."""
    between_d = (memory["sum"] ** 2).sum(0) - memory["squares"]
    return between_d / (memory["precision"] ** 2 - memory["precision_squared"])


def _precision(informative: Bool[np.ndarray, " d"]) -> Float64[np.ndarray, " d"]:
    """Return one over the variance of a message's noise on each coordinate, that of an isotropic message being 1."""
    chosen = int(informative.sum())
    of_group = Allocation(sizes=(chosen, len(informative) - chosen)).noise_ratios
    return np.array(of_group)[np.where(informative, 0, 1)] ** -2.0
