r"""Evidence for classes as a Dirichlet distribution: what it predicts, how sure it is, and the loss that trains it.

Evidence ``e >= 0`` for each of C classes makes concentrations ``alpha = e + prior`` with sum ``S``; the prediction is
``p = alpha / S``. Its entropy is split into what more evidence would not change and what it would:

====================  ==================================================  =========================================
total                 ``-sum_c p_c ln p_c``                               [0, ln C]
aleatoric             ``-sum_c p_c (psi(alpha_c + 1) - psi(S + 1))``      [0, ln C)
epistemic             total - aleatoric                                   [0, ln C - psi(C + 1) + psi(2)], prior 1
====================  ==================================================  =========================================

The upper end of the last is reached without any evidence; it is below 1 - 0.5772 = 0.4228 for every C.

Logits, evidence and concentrations have classes last; every function takes any axes before it. torch is imported by
those that need it.

Source: Sensoy et al. (2018), "Evidential deep learning to quantify classification uncertainty"; FedUP, Eqs. 2 to 8,
which are missing in the text that was at hand and reconstructed here
"""

import math
from typing import TYPE_CHECKING, NamedTuple

from scipy.special import digamma

if TYPE_CHECKING:
    from torch import Tensor


class Uncertainty(NamedTuple):
    """The parts of a prediction's entropy, in nats, each without the axis of classes."""

    total: "Tensor"
    aleatoric: "Tensor"
    epistemic: "Tensor"


def evidence(logits: "Tensor") -> "Tensor":
    """Return ``softplus(logits)``, at least 0, of the same shape (FedUP, Eq. 4)."""
    from torch.nn.functional import softplus

    return softplus(logits)


def uncertainty(alpha: "Tensor") -> Uncertainty:
    """Return how uncertain predictions are, by kind (FedUP, Eqs. 5 to 7).

    Args:
        alpha: concentrations, above 0, shape [..., C]; float64 keeps the split exact to 1e-10.
    """
    import torch

    whole = alpha.sum(-1, keepdim=True)
    p = alpha / whole
    total = -(p * p.log()).sum(-1)
    aleatoric = -(p * (torch.digamma(alpha + 1) - torch.digamma(whole + 1))).sum(-1)
    # both are entropies: what rounding takes below 0 or above their sum is none
    aleatoric = aleatoric.clamp(min=0).minimum(total)
    return Uncertainty(total, aleatoric, total - aleatoric)


def largest_epistemic(num_classes: int, *, prior: float = 1.0) -> float:
    """Return the epistemic uncertainty without any evidence, in nats: the most there is, for a prior of at least 1.

    Args:
        num_classes: C, at least 1.
        prior: concentration of every class, above 0.

    >>> [round(largest_epistemic(c), 4) for c in (2, 9, 10, 14, 100)]
    [0.1931, 0.3683, 0.3736, 0.3875, 0.4178]
    """
    first, last = digamma(prior + 1), digamma(prior * num_classes + 1)
    return max(0.0, float(math.log(num_classes) - last + first))


def divergence_from_uniform(alpha: "Tensor") -> "Tensor":
    """Return ``KL(Dir(alpha) || Dir(1, ..., 1))`` in nats, at least 0, shape [...]."""
    import torch

    whole = alpha.sum(-1)
    slopes = torch.digamma(alpha) - torch.digamma(whole).unsqueeze(-1)
    constant = whole.lgamma() - alpha.lgamma().sum(-1) - math.lgamma(alpha.shape[-1])
    return constant + ((alpha - 1) * slopes).sum(-1)


def evidential_loss(
    evidence: "Tensor", y: "Tensor", *, prior: float = 1.0, anneal: "float | Tensor" = 1.0
) -> "Tensor":
    r"""Return the expected cross-entropy of each record, plus what evidence for wrong classes costs (FedUP, Eq. 8).

    ``psi(S) - psi(alpha_y) + anneal KL(Dir(alpha~) || Dir(1, ..., 1))``, where alpha~ is the evidence without that for
    the own class, plus 1. FedUP prints ``alpha~ = alpha - e_y + 1``, which is not 0 for a record that has evidence for
    its own class only; the reading here, of Sensoy et al. (2018), is.

    Args:
        evidence: at least 0, shape [..., C].
        y: class of each record, shape [...].
        prior: concentration of a class without evidence, above 0.
        anneal: weight of the divergence, in [0, 1]; broadcasts with y.

    Returns:
        at least 0 for a prior of at least 1, shape [...].
    """
    import torch

    alpha, own = evidence + prior, y.unsqueeze(-1)
    expected = torch.digamma(alpha.sum(-1)) - torch.digamma(alpha.gather(-1, own).squeeze(-1))
    wrong = evidence.scatter(-1, own, 0.0) + 1
    return expected + anneal * divergence_from_uniform(wrong)


def annealed(round: "Tensor", *, over: int) -> "Tensor":
    """Return the weight of the divergence in a round counted from 0: it grows to 1 over so many rounds (0: at once)."""
    import torch

    return (round / over).clamp(max=1.0) if over else torch.ones_like(round)
