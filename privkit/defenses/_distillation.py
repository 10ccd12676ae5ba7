"""DCR's local rule: a soft clip after the encoder, and a teacher that keeps the head from undoing it."""

from typing import TYPE_CHECKING

from pydantic import Field

from privkit.defenses._local import LocalRule

if TYPE_CHECKING:
    from torch import Tensor

    from privkit.batch import Batch
    from privkit.network import Network

_HEAD = "head."


class ClippingRegularization(LocalRule):
    """Distillation-guided clipping regularization (VPDR, Section 4.3): local, so it costs no privacy.

    The loss of the method sees soft-clipped embeddings. The teacher is a moving average of the head, sees the
    embeddings as they are, and gets no gradient. Testing and releases see embeddings as they are.
    """

    radius: float = Field(
        default=1.0, gt=0, description="R, towards which embeddings are pulled; VPDR takes its clip norm"
    )
    softness: float = Field(
        default=0.05, gt=0, lt=1, description="gamma; short embeddings are stretched by up to 1 / gamma"
    )
    momentum: float = Field(default=0.999, ge=0, lt=1, description="beta, weight of the teacher's own past")
    temperature: float = Field(default=4.0, gt=0, description="tau, of both softmaxes in the distillation")
    weight: float = Field(default=0.05, ge=0, description="lambda_1, weight of the distillation loss")
    scaled: bool = Field(
        default=False, description="multiply the distillation loss by tau squared, as the published code does"
    )
    clamped: bool = Field(
        default=False, description="never stretch an embedding; the published code clamps the factor at 1"
    )
    warm_up: int = Field(
        default=0,
        ge=0,
        description="steps of each client before the teacher starts; the published code has 5",
    )

    def memory(self, params: "dict[str, Tensor]") -> "dict[str, Tensor]":
        import torch

        heads = {name: p.detach().clone() for name, p in params.items() if name.startswith(_HEAD)}
        clients = next(iter(params.values()))
        return {**heads, "steps": torch.zeros(len(clients), dtype=torch.int64, device=clients.device)}

    def bound(self, z_GBd: "Tensor") -> "Tensor":
        return soft_clip(z_GBd, radius=self.radius, softness=self.softness, clamped=self.clamped)

    def loss(
        self,
        network: "Network",
        params: "dict[str, Tensor]",
        memory: "dict[str, Tensor]",
        z_GBd: "Tensor",
        u_GBd: "Tensor",
        batch: "Batch",
    ) -> "Tensor":
        teacher = {name: m for name, m in memory.items() if name.startswith(_HEAD)}
        taught = network.still.logits({**params, **teacher}, z_GBd.detach()).detach()
        student = network.logits(params, u_GBd)
        scale = self.weight * (self.temperature**2 if self.scaled else 1.0)
        divergence_GB = _divergence(taught / self.temperature, student / self.temperature)
        started_G = memory["steps"] >= self.warm_up
        return scale * started_G * (divergence_GB * batch.weight).sum(-1)

    def after_step(self, params: "dict[str, Tensor]", memory: "dict[str, Tensor]", *, active: int) -> None:
        import torch

        with torch.no_grad():
            # while it warms up, the teacher is the head itself
            started = memory["steps"][:active] >= self.warm_up
            kept = started.double() * self.momentum
            for name, m in memory.items():
                if name.startswith(_HEAD):
                    beta = kept.to(m.dtype).view(active, *[1] * (m.ndim - 1))
                    m[:active].lerp_(params[name][:active], 1 - beta)
            memory["steps"][:active] += 1


def soft_clip(z: "Tensor", *, radius: float, softness: float, clamped: bool = False) -> "Tensor":
    r"""Return embeddings scaled by ``R / (|z| + gamma R)``, along the last axis.

    The length becomes ``R t / (t + gamma)`` with ``t = |z| / R``: below R always, and above the old length where
    that is below ``(1 - gamma) R``, unless ``clamped``.

    Source: VPDR, Eq. 15.

    >>> import torch
    >>> soft_clip(torch.tensor([[3.0, 4.0]]), radius=5.0, softness=0.05).norm()
    tensor(4.7619)
    """
    factor = radius / (z.norm(dim=-1, keepdim=True) + softness * radius)
    return z * (factor.clamp(max=1.0) if clamped else factor)


def _divergence(taught_GBC: "Tensor", student_GBC: "Tensor") -> "Tensor":
    """Return KL(softmax(taught) || softmax(student)) of each record, shape [G, B] (VPDR, Eq. 17)."""
    log_p, log_q = taught_GBC.log_softmax(-1), student_GBC.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)
