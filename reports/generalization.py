"""One configuration with each domain held out in turn: accuracies of who trained and of who did not, as a matrix."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privkit import measured
from privkit.atomic import canonical_json
from privkit.errors import InputError
from privkit.personal import PersonalModel
from privkit.store import Run
from reports import head_conflict
from reports.utility_cells import trained


@dataclass(frozen=True, eq=False, kw_only=True)
class Generalization:
    """What N cells measured that differ in nothing but the domain held out.

    Attributes:
        run: the folder that they are in.
        name: what their names have in common.
        config: their configuration, without the domain held out.
        domains: all of them, N.
        matrices: by seed, in [0, 1], shape [N, N]: row o is of the runs that held out o; of its columns, o is the
            newcomer and the rest are clients. Not a number where nothing was measured.
        conflict: mean cosine of pseudo-gradients of the head, over runs; ``None`` if it has none.
        orthogonality: largest ``max |M^T M - I|`` of a client's map after training; ``None`` if none has a matrix.
        condition: mean condition number of clients' maps after training, at least 1; ``None`` likewise.
    """

    run: str
    name: str
    config: Mapping[str, Any]
    domains: tuple[str, ...]
    matrices: Mapping[int, np.ndarray]
    conflict: float | None = None
    orthogonality: float | None = None
    condition: float | None = None

    @property
    def model(self) -> str:
        """Return what is trained, in words."""
        return trained(self.config)

    def generalization(self) -> dict[int, float | None]:
        """Return G of each seed: mean accuracy of newcomers, the diagonal; ``None`` if an entry is missing."""
        return {seed: _mean(np.diag(a)) for seed, a in self.matrices.items()}

    def personalization(self) -> dict[int, float | None]:
        """Return P of each seed: mean accuracy of clients, off the diagonal; ``None`` likewise."""
        return {seed: _mean(a[~np.eye(len(a), dtype=bool)]) for seed, a in self.matrices.items()}

    def comprehensive(self) -> dict[int, float | None]:
        """Return C of each seed: mean of all entries, which is ``(G + (N - 1) P) / N``; ``None`` likewise."""
        return {seed: _mean(a.ravel()) for seed, a in self.matrices.items()}


def by_identity(g: float | None, p: float | None, n: int) -> float | None:
    """Return the C that G and P of N domains give.

    >>> round(by_identity(0.7867, 0.8858, 4), 4)
    0.861
    """
    return None if g is None or p is None else (g + (n - 1) * p) / n


def _mean(values: np.ndarray) -> float | None:
    return None if np.isnan(values).any() else float(values.mean())


def generalizations(folder: str, named: Iterable[tuple[str, Sequence[Run]]]) -> list[Generalization]:
    """Return the cells that held out a domain, those of one configuration together, in the order of their names.

    Args:
        folder: that they are in.
        named: each cell's name, and its complete runs, one per seed.

    Raises:
        InputError: two cells of one configuration hold out the same domain.
    """
    groups: dict[str, dict[str, tuple[str, Sequence[Run]]]] = {}
    for name, runs in named:
        config = dict(runs[0].info.config)
        unseen = config.pop("held_out", None)
        if unseen is None:
            continue
        group = groups.setdefault(canonical_json(config), {})
        if unseen in group:
            raise InputError(
                f"{folder}: cells {group[unseen][0]} and {name} are one configuration, and both hold out {unseen}; "
                "give one of them."
            )
        group[unseen] = (name, runs)
    return [_of(folder, group) for group in groups.values()]


def _of(folder: str, group: Mapping[str, tuple[str, Sequence[Run]]]) -> Generalization:
    (name, first), *_ = group.values()
    config = {key: value for key, value in first[0].info.config.items() if key != "held_out"}
    domains = _domains(group)
    every = [run for _, runs in group.values() for run in runs]
    errors, conditions = _maps(every, config)
    conflicts = [value for run in every if (value := head_conflict.conflict(run)) is not None]
    return Generalization(
        run=folder,
        name=_common(name, next(iter(group))),
        config=config,
        domains=domains,
        matrices=_matrices(group, domains),
        conflict=float(np.mean(conflicts)) if conflicts else None,
        orthogonality=max(errors, default=None),
        condition=float(np.mean(conditions)) if conditions else None,
    )


def _common(name: str, unseen: str) -> str:
    """Return a cell's name without the domain held out, if it is a part of it.

    >>> _common("fedot-fluent-3d", "fluent-3d"), _common("smart-art-r4", "art"), _common("a", "b"), _common("a", "a")
    ('fedot', 'smart-r4', 'a', 'a')
    """
    return f"-{name}-".replace(f"-{unseen}-", "-").strip("-") or name


def _domains(group: Mapping[str, tuple[str, Sequence[Run]]]) -> tuple[str, ...]:
    """Return all domains in the data set's order: the later one is there, the higher its number on average."""
    places: dict[str, list[int]] = {name: [] for name in group}
    for _, runs in group.values():
        for place, name in enumerate(runs[0].info.clients):
            places.setdefault(name, []).append(place)
    return tuple(sorted(places, key=lambda name: (float(np.mean(places[name] or [0])), name)))


def _matrices(
    group: Mapping[str, tuple[str, Sequence[Run]]], domains: Sequence[str]
) -> dict[int, np.ndarray]:
    found: dict[int, np.ndarray] = {}
    for unseen, (name, runs) in group.items():
        o = domains.index(unseen)
        for run, kept in zip(runs, measured.of_cell(name, runs), strict=True):
            matrix = found.setdefault(run.info.seed or 0, np.full((len(domains), len(domains)), np.nan))
            for domain, accuracy in kept.last.items():
                matrix[o, domains.index(domain)] = accuracy
            if kept.newcomers:
                matrix[o, o] = kept.newcomers[-1]
    return dict(sorted(found.items()))


def _maps(runs: Iterable[Run], config: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return orthogonality errors and condition numbers of all clients' maps after training."""
    import torch

    from privkit.network import TRANSFORM
    from privkit.transforms._measures import condition_numbers, orthogonality_errors

    transform = PersonalModel.model_validate(config["model"]).transform
    errors, conditions = list[float](), list[float]()
    if transform is None:
        return errors, conditions
    prefix = f"params.{TRANSFORM}"
    for run in runs:
        try:
            state = {n: p for n, p in run.state(run.completed).items() if n.startswith(prefix)}
        except InputError:  # what training needs to go on may be removed, and all else is still there
            continue
        matrix = transform.matrix({n.removeprefix(prefix): torch.from_numpy(p) for n, p in state.items()})
        if matrix is not None:
            errors += orthogonality_errors(matrix).tolist()
            conditions += condition_numbers(matrix).tolist()
    return errors, conditions
