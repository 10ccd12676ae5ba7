"""No defense: the gradient as it is."""

from privkit.finetune.defenses._base import AbstractTuningDefense


class Nothing(AbstractTuningDefense):
    """Send what was computed. It promises nothing."""
