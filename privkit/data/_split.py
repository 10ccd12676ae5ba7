"""Divide each domain's records into members, non-members, the attacker's own, and test records."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

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
        dropped: left out, since their class is too small there to be split.
    """

    members: Int64[np.ndarray, " M"]
    non_members: Int64[np.ndarray, " N"]
    reference: Int64[np.ndarray, " R"]
    test: Int64[np.ndarray, " T"]
    dropped: Int64[np.ndarray, " D"]


_PARTS = ("members", "non_members", "reference", "test", "dropped")


class SmallClasses(StrEnum):
    """What happens to a class of a domain that is too small to have a member, a non-member and a test record."""

    REFUSE = "refuse"
    """Nothing is trained."""
    DROP = "drop"
    """That domain goes without the class."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How a domain is divided.

    Attributes:
        pool: share of each class that is halved into members and non-members.
        reference: share that the attacker owns.
        test: share for accuracy, where the data set keeps no test records; the three add up to at most 1.
        small_classes: what happens to a class that is too small.
    """

    pool: float
    reference: float
    test: float
    small_classes: SmallClasses = SmallClasses.REFUSE


def divide(
    labels: Int64[np.ndarray, " N"],
    *,
    num_classes: int,
    shares: Shares,
    seed: int,
    client: int,
    name: str,
    tests: Int64[np.ndarray, " T"] | None = None,
) -> Parts:
    """Return a random split of one domain, stratified by class. A class may be missing.

    Args:
        labels: class of each record.
        num_classes: classes the data set has.
        shares: how it is divided.
        seed: of the run; every seed splits anew.
        client: number of the domain.
        name: of the domain, for messages.
        tests: class of each record that the data set keeps for testing; all of them are tested on then.

    Raises:
        InputError: a label is no class, a class is too small and small ones are refused, nothing is left, there are no
            test records, or the domain has a single class and is tested on its own records.
    """
    least = 2 if tests is None else 1
    _refuse_labels(labels, num_classes=num_classes, name=name, least=least)
    if tests is not None:
        _refuse_labels(tests, num_classes=num_classes, name=f"{name} (test records)", least=1)
    rng = keyed(seed, Purpose.SPLIT, client=client)
    chosen: dict[str, list[np.ndarray]] = {k: [] for k in _PARTS}
    for label in range(num_classes):
        rows = rng.permutation(np.flatnonzero(labels == label))
        half = int(shares.pool * len(rows)) // 2
        if half < 1:
            if len(rows) and shares.small_classes is SmallClasses.REFUSE:
                raise InputError(
                    f"class {label} of domain {name} has {len(rows)} record{'s' * (len(rows) > 1)}, too few for one "
                    "member and one non-member; raise split.pool, or leave it out there with split.small_classes: drop."
                )
            chosen["dropped"].append(rows)
            continue
        tested = max(1, int(shares.test * len(rows))) if tests is None else 0
        owned = min(round(shares.reference * len(rows)), len(rows) - 2 * half - tested)
        ends = np.cumsum([half, half, owned, tested])
        for key, part in zip(_PARTS, np.split(rows, ends)[:4], strict=False):
            chosen[key].append(part)
    if len(chosen["members"]) < least:
        raise InputError(
            f"domain {name} has {('no class', 'only one class')[len(chosen['members'])]} that is large enough; raise "
            "split.pool, or leave the domain out."
        )
    nothing = np.zeros(0, dtype=np.int64)
    parts = {key: np.sort(np.concatenate([nothing, *rows])) for key, rows in chosen.items()}
    return Parts(**parts if tests is None else parts | {"test": np.arange(len(tests))})


def divide_things(
    domains: Sequence[tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]],
    *,
    names: Sequence[str],
    num_classes: int,
    shares: Shares,
    seed: int,
) -> list[Parts]:
    """Return a split of domains that show the same things: a thing is on one side in all of them.

    Args:
        domains: class and thing of each record, by domain.
        names: of the domains, for messages.
        num_classes: classes the data set has.
        shares: how the things of each class are divided.
        seed: of the run.

    Raises:
        InputError: as :func:`divide`, or a thing has two classes, or a domain shows none of those that are trained on,
            or none of those that are tested on.
    """
    labels, things = (np.concatenate(arrays) for arrays in zip(*domains, strict=True))
    pairs = np.unique(np.stack([things, labels], axis=1), axis=0)
    twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(twice):
        thing, one = pairs[twice[0]]
        raise InputError(
            f"thing {thing} is of class {one} and of class {pairs[twice[0] + 1, 1]}; give every thing one class."
        )
    whole = divide(
        pairs[:, 1], num_classes=num_classes, shares=shares, seed=seed, client=0, name="all, by thing"
    )
    sides = {key: pairs[rows, 0] for key, rows in vars(whole).items()}
    found = [
        Parts(**{key: np.flatnonzero(np.isin(own, shown)) for key, shown in sides.items()})
        for _, own in domains
    ]
    for name, parts in zip(names, found, strict=True):
        _refuse_unseen(name, parts)
    return found


def _refuse_unseen(name: str, parts: Parts) -> None:
    for side, rows in (("trained", parts.members), ("tested", parts.test)):
        if not len(rows):
            raise InputError(
                f"domain {name} shows none of the things that are {side} on; give it more of them, or another seed."
            )


def _refuse_labels(labels: np.ndarray, *, num_classes: int, name: str, least: int) -> None:
    held = len(np.unique(labels))
    if held < least:
        raise InputError(
            f"domain {name} has records of {held} class{'es' * (held == 0)}; give at least "
            f"{('one class', 'two classes')[least - 1]}."
        )
    if labels.min() < 0 or labels.max() >= num_classes:
        raise InputError(
            f"domain {name} has labels from {labels.min()} to {labels.max()}; "
            f"number its {num_classes} classes from 0 to {num_classes - 1}."
        )
