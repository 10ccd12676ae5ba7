"""VPP's release organised as in VPDR's code: a pass over a DataLoader fills a list per class; torch makes prototypes.

Written from the paper's Section 4.2 and a description of the code (records are collected one by one; scores, groupwise
clipping and noise are tensor operations in float32), for one client whose features are cached. Its Laplace noise is
given, so that both sides choose the same coordinates; its Gaussian noise can be left out, so that both give the same
prototypes.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True, kw_only=True)
class Release:
    """One client's release with its settings.

    Attributes:
        clip_norm: R.
        size: of the informative group.
        stds: noise of each group times records / 2, informative first; zeros leave it out.
        score_bound: H.
        stabiliser: zeta.
    """

    clip_norm: float
    size: int
    stds: tuple[float, float]
    score_bound: float
    stabiliser: float

    def prototypes(self, loader: DataLoader[tuple[Tensor, ...]], laplace_d: Tensor) -> dict[int, Tensor]:
        """Return a prototype per class."""
        by_class = collected(loader)
        chosen = torch.topk(self._scores(by_class) + laplace_d, self.size).indices
        informative_d = torch.zeros(len(laplace_d), dtype=torch.bool)
        informative_d[chosen] = True
        return {
            label: self._noisy(self._clipped(z_nd, informative_d).mean(0), len(z_nd), informative_d)
            for label, z_nd in by_class.items()
        }

    def _scores(self, by_class: dict[int, Tensor]) -> Tensor:
        """Return the clipped ratio of variances between and within classes (VPDR, Eqs. 7 and 8)."""
        records, classes = sum(map(len, by_class.values())), len(by_class)
        means = {label: z_nd.mean(0) for label, z_nd in by_class.items()}
        grand_d = sum(len(by_class[label]) * mean for label, mean in means.items()) / records
        within_d = sum((len(z_nd) - 1) * z_nd.var(0) for z_nd in by_class.values())
        between_d = sum(len(by_class[label]) * (mean - grand_d) ** 2 for label, mean in means.items())
        scores_d = (between_d / (classes - 1)) / (within_d / (records - classes) + self.stabiliser)
        return torch.clamp(torch.as_tensor(scores_d), 0, self.score_bound)

    def _clipped(self, z_nd: Tensor, informative_d: Tensor) -> Tensor:
        """Return records with both groups of coordinates clipped to balls of their own."""
        clipped = z_nd.clone()
        for group_d in (informative_d, ~informative_d):
            part = z_nd[:, group_d]
            norm = self.clip_norm * float(group_d.float().mean().sqrt())
            clipped[:, group_d] = part * torch.clamp(norm / (part.norm(dim=1, keepdim=True) + 1e-12), max=1.0)
        return clipped

    def _noisy(self, mean_d: Tensor, records: int, informative_d: Tensor) -> Tensor:
        std_d = torch.where(informative_d, *(2 * std / records for std in self.stds))
        return mean_d + torch.randn_like(mean_d) * std_d


def collected(loader: DataLoader[tuple[Tensor, ...]]) -> dict[int, Tensor]:
    """Return the features of each class, from a pass over the loader that puts records into lists."""
    found: dict[int, list[Tensor]] = defaultdict(list)
    for z_Bd, y_B in loader:
        for i, label in enumerate(y_B):
            found[label.item()].append(z_Bd[i, :].detach())
    return {label: torch.stack(found[label]) for label in sorted(found)}


def loader(
    features: np.ndarray, labels: np.ndarray, *, batch_size: int = 256
) -> DataLoader[tuple[Tensor, ...]]:
    """Return a loader over cached features, in memory."""
    return DataLoader(
        TensorDataset(torch.from_numpy(features), torch.from_numpy(labels)), batch_size, shuffle=True
    )
