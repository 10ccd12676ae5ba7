"""Divide each domain's records into members, non-members, the attacker's own, and test records."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from privkit.errors import InputError
from privkit.noise import Purpose, keyed


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """Row numbers of one domain, disjoint, ascending.

    Attributes:
        members: trained on.
        non_members: the other random half of the same pool.
        reference: owned by the attacker.
        test: for accuracy.
    """

    members: Int64[np.ndarray, " M"]
    non_members: Int64[np.ndarray, " N"]
    reference: Int64[np.ndarray, " R"]
    test: Int64[np.ndarray, " T"]


def divide(
    labels: Int64[np.ndarray, " N"],
    *,
    num_classes: int,
    pool: float,
    reference: float,
    test: float,
    seed: int,
    client: int,
    name: str,
) -> Parts:
    """Return a random split of one domain, stratified by class.

    Args:
        labels: class of each record.
        num_classes: classes the data set has.
        pool: share of each class that is halved into members and non-members.
        reference: share that the attacker owns.
        test: share for accuracy; the three add up to at most 1.
        seed: of the run; every seed splits anew.
        client: number of the domain.
        name: of the domain, for messages.

    Raises:
        InputError: the domain has a single class, a label that is no class, or a class too small to have
            a member and a test record.
    """
    if len(np.unique(labels)) < 2:
        raise InputError(
            f"domain {name} has records of {len(np.unique(labels))} class; give at least two classes."
        )
    if labels.min() < 0 or labels.max() >= num_classes:
        raise InputError(
            f"domain {name} has labels from {labels.min()} to {labels.max()}; "
            f"number its {num_classes} classes from 0 to {num_classes - 1}."
        )
    rng = keyed(seed, Purpose.SPLIT, client=client)
    chosen: dict[str, list[np.ndarray]] = {k: [] for k in ("members", "non_members", "reference", "test")}
    for label in range(num_classes):
        rows = rng.permutation(np.flatnonzero(labels == label))
        half = int(pool * len(rows)) // 2
        if half < 1:
            raise InputError(
                f"class {label} of domain {name} has {len(rows)} records, too few for one member and one "
                "non-member; drop the class, or raise split.pool."
            )
        tested = max(1, int(test * len(rows)))
        owned = min(round(reference * len(rows)), len(rows) - 2 * half - tested)
        ends = np.cumsum([half, half, owned, tested])
        for key, part in zip(chosen, np.split(rows, ends)[:4], strict=True):
            chosen[key].append(part)
    return Parts(**{key: np.sort(np.concatenate(parts)) for key, parts in chosen.items()})
