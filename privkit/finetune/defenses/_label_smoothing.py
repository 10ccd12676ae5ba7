"""The loss of label smoothing."""

from torch import Tensor
from torch.nn.functional import cross_entropy

from privkit.finetune.guard import Guard
from privkit.finetune.terms import Terms


class SmoothingGuard(Guard):
    """Cross-entropy with softer targets."""

    def __init__(self, terms: Terms, *, alpha: float) -> None:
        super().__init__(terms)
        self.alpha = alpha

    def record_losses(self, logits_NC: Tensor, labels_N: Tensor) -> Tensor:
        return cross_entropy(logits_NC, labels_N, reduction="none", label_smoothing=self.alpha)
