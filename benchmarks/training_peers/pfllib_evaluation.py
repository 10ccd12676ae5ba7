"""Nearest-prototype evaluation organised as in PFLlib: a Python loop over records, inside it one over classes.

Structure after PFLlib (Zhang et al., 2023).
"""

import torch

from benchmarks.training_peers.pfllib_round import ProtoServer


@torch.no_grad()
def accuracies(server: ProtoServer) -> list[float]:
    """Return each client's share of test records whose nearest global prototype is that of their class."""
    found: list[float] = []
    for client in server.clients:
        right, seen = 0, 0
        for x, y in client.test_batches():
            rep = client.model.base(x)
            output = float("inf") * torch.ones(len(y), client.given.num_classes)
            for i, r in enumerate(rep):
                for label, prototype in client.global_prototypes.items():
                    output[i, label] = client.mse(r, prototype)
            right += (torch.argmin(output, dim=1) == y).sum().item()
            seen += len(y)
        found.append(right / seen)
    return found
