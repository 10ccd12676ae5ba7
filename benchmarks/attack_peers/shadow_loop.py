"""Shadow models one after the other, as implementations of LiRA train them: each with module, loader and optimiser."""

import numpy as np
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.shadows import BATCH, EPOCHS, MOMENTUM, Given


def torch_logits(given: Given) -> np.ndarray:
    """Return the logits of all records under one linear head per shadow, shape [S, N, C]."""
    x, y = torch.from_numpy(given.x), torch.from_numpy(given.y)
    found = []
    for s, held in enumerate(given.held):
        torch.manual_seed(s)
        # the bias is the constant feature, as on our side
        model = torch.nn.Linear(x.shape[1], given.num_classes, bias=False)
        torch.nn.init.zeros_(model.weight)
        optimizer = torch.optim.SGD(
            model.parameters(), lr=given.rate, momentum=MOMENTUM, weight_decay=given.decay
        )
        rows = torch.from_numpy(np.flatnonzero(held))
        loader = DataLoader(TensorDataset(x[rows], y[rows]), batch_size=BATCH // 2, shuffle=True)
        steps = EPOCHS * len(loader)
        falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done, steps=steps: 1 - done / steps)
        for _ in range(EPOCHS):
            for x_B, y_B in loader:
                optimizer.zero_grad()
                functional.cross_entropy(model(x_B), y_B).backward()
                optimizer.step()
                falling.step()
        with torch.no_grad():
            found.append(torch.cat([model(part) for part in x.split(1000)]).numpy())
    return np.stack(found)
