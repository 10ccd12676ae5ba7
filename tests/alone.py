"""One client trained alone, with torch's own modules and optimiser: what the stacked engine is held against.

Nothing of the engine is used but the keys of its random streams: which records make a mini-batch, and which hidden
units a step leaves out.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from privkit.defenses._distillation import ClippingRegularization
from privkit.noise import Purpose, keyed
from privkit.train.cohort import Client

Drop = Callable[[Tensor], Tensor]


def nothing(h: Tensor) -> Tensor:
    return h


@dataclass
class Masks:
    """Keyed dropout of one round, as a function of one client's hidden units alone.

    Attributes:
        client: whose units they are.
        round: of training.
        share: of units that are left out.
        size: records of a full batch; a smaller one uses the first rows of a full one's masks.
    """

    client: Client
    round: int
    share: float
    size: int
    records: int = 0
    stream: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.stream = keyed(self.client.seed, Purpose.DROPOUT, round=self.round, client=self.client.index)

    def __call__(self, h: Tensor) -> Tensor:
        rows = h.numel() // h.shape[-1]
        drawn = self.stream.random((rows // self.records * self.size, h.shape[-1]), np.float32)
        kept = torch.from_numpy(drawn[:rows] >= self.share).view(h.shape)
        return h * kept / (1 - self.share)


class Adapter(nn.Module):
    """A residual bottleneck without biases."""

    def __init__(self, down: np.ndarray, up: np.ndarray) -> None:
        super().__init__()
        self.down, self.up = _linear(down), _linear(up)

    def forward(self, h: Tensor, drop: Drop) -> Tensor:
        return h + self.up(drop(functional.relu(self.down(h))))


class Head(nn.Module):
    """Linear layers with ReLUs between them."""

    def __init__(self, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_linear(weight, bias) for weight, bias in layers)

    def forward(self, u: Tensor, drop: Drop) -> Tensor:
        for layer in self.layers[:-1]:
            u = drop(functional.relu(layer(u)))
        return self.layers[-1](u)


class After(nn.Module):
    """Features, one adapter or none, and a head."""

    def __init__(self, named: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.adapter = Adapter(named["adapter.down"], named["adapter.up"]) if "adapter.up" in named else None
        self.head = head_of(named)

    def embed(self, x: Tensor, drop: Drop) -> Tensor:
        return x if self.adapter is None else self.adapter(x, drop)

    def named(self) -> dict[str, Tensor]:
        """Return the parameters under the engine's names, as it shapes them."""
        found = {} if self.adapter is None else adapter_named(self.adapter, "adapter.")
        return found | head_named(self.head)


def head_of(named: Mapping[str, np.ndarray]) -> Head:
    prefixes = ["head.", *(f"head.{layer}." for layer in range(1, 9) if f"head.{layer}.weight" in named)]
    return Head([(named[f"{prefix}weight"], named[f"{prefix}bias"]) for prefix in prefixes])


def head_named(head: Head) -> dict[str, Tensor]:
    found = {}
    for i, layer in enumerate(head.layers):
        prefix = f"head.{i}." if i else "head."
        assert isinstance(layer, nn.Linear)
        found |= {f"{prefix}weight": layer.weight.detach().T, f"{prefix}bias": layer.bias.detach()}
    return found


def adapter_named(adapter: Adapter, prefix: str) -> dict[str, Tensor]:
    return {
        f"{prefix}down": adapter.down.weight.detach().T,
        f"{prefix}up": adapter.up.weight.detach().T,
    }


def _linear(weight: np.ndarray, bias: np.ndarray | None = None) -> nn.Linear:
    """Return a torch layer with a copy of weights of shape [in, out]."""
    layer = nn.Linear(*weight.shape, bias=bias is not None)
    layer.weight = nn.Parameter(torch.from_numpy(weight.T.copy()))
    if bias is not None:
        layer.bias = nn.Parameter(torch.from_numpy(bias.copy()))
    return layer


@dataclass
class Setup:
    """How a client trains, and on what it is pulled to.

    Attributes:
        prototypes: of each round, each of shape [C, d].
        present: which classes have one, shape [C].
        rule: the distillation, if there is one.
    """

    prototypes: Sequence[Tensor]
    present: Tensor
    rule: ClippingRegularization | None = None
    epochs: int = 2
    size: int = 8
    learning_rate: float = 0.01
    weight_decay: float = 0.05
    pull: float = 0.5
    dropout: float = 0.0


def train(module: After, client: Client, setup: Setup) -> Head | None:
    """Train a client alone, in place, for one round per set of prototypes, and return its teacher."""
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=setup.learning_rate, weight_decay=setup.weight_decay
    )
    x, y = torch.from_numpy(client.x), torch.from_numpy(client.y)
    teacher, step = None, 0
    for round, prototypes in enumerate(setup.prototypes):
        masks = Masks(client, round, setup.dropout, setup.size) if setup.dropout else None
        for rows in order(client, round, setup):
            if setup.rule is not None and step == setup.rule.warm_up:
                teacher = copy.deepcopy(module.head)
            if masks is not None:
                masks.records = len(rows)
            loss = _loss(module, x[rows], y[rows], prototypes, setup, teacher, masks or nothing)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if setup.rule is not None and teacher is not None:
                _follow(teacher, module.head, setup.rule.momentum)
            step += 1
    return teacher


def order(client: Client, round: int, setup: Setup) -> list[np.ndarray]:
    """Return the records of each mini-batch of a round."""
    rng = keyed(client.seed, Purpose.BATCHES, round=round, client=client.index)
    epochs = [rng.permutation(len(client.y)) for _ in range(setup.epochs)]
    return [one[start : start + setup.size] for one in epochs for start in range(0, len(one), setup.size)]


def _loss(
    module: After,
    x: Tensor,
    y: Tensor,
    prototypes: Tensor,
    setup: Setup,
    teacher: Head | None,
    drop: Drop,
) -> Tensor:
    z = module.embed(x, drop)
    u = z if setup.rule is None else soft(z, setup.rule)
    logits = module.head(u, drop)
    loss = functional.cross_entropy(logits, y)
    held = setup.present[y]
    if held.any():
        far = functional.mse_loss(u[held], prototypes[y[held]], reduction="sum") / u.shape[1]
        loss = loss + setup.pull * far / len(y)
    return loss if setup.rule is None or teacher is None else loss + taught(logits, z, teacher, setup.rule)


def soft(z: Tensor, rule: ClippingRegularization) -> Tensor:
    """Return softly clipped embeddings, one record at a time."""
    found = []
    for one in z:
        factor = rule.radius / (one.norm() + rule.softness * rule.radius)
        found.append(one * torch.clamp(factor, max=1.0) if rule.clamped else one * factor)
    return torch.stack(found)


def taught(logits: Tensor, z: Tensor, teacher: Head, rule: ClippingRegularization) -> Tensor:
    """Return the weighted distillation loss of a batch."""
    with torch.no_grad():
        wanted = (teacher(z, nothing) / rule.temperature).softmax(-1)
    said = (logits / rule.temperature).log_softmax(-1)
    loss = functional.kl_div(said, wanted, reduction="batchmean")
    return rule.weight * (rule.temperature**2 if rule.scaled else 1.0) * loss


def _follow(teacher: Head, head: Head, momentum: float) -> None:
    with torch.no_grad():
        for theirs, own in zip(teacher.parameters(), head.parameters(), strict=True):
            theirs.mul_(momentum).add_(own, alpha=1 - momentum)
