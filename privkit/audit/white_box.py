"""Checks of an auditor who holds what was computed before the noise: each a p-value, and what a rejection says."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from accountant.contract import Counts, DependsOn
from accountant.events import leaves
from attacks.statistics.count_scale import count_scale_p_value, count_scale_ratio, split_by_count
from attacks.statistics.residuals import least_scale, scale_p_value, scale_ratio
from attacks.statistics.shape import shape_gap, shape_p_value
from attacks.statistics.sharing import common_p_value, common_share, most_alike
from privkit import canary
from privkit.audit.behind import known_records, overstated, planted_records, sizes
from privkit.audit.left import Left, sent_counts
from privkit.audit.recovered import farthest_known, longest
from privkit.audit.scored import RunView
from privkit.release import Release
from privkit.truth import Truth

ROUNDING = 1e-6


@dataclass(frozen=True)
class Check:
    """One check of how releases were made.

    Attributes:
        p_value: of "it was made as claimed", in [0, 1]; 0 or 1 where nothing is left to chance.
        says: what a rejection means, in a sentence without its end.
    """

    p_value: float
    says: str


@dataclass(frozen=True, eq=False)
class Seen:
    """One run as an auditor sees it: what was asked, what is known, and what the noise of every release was."""

    view: RunView
    truth: Truth
    left: list[Left]

    def held(self, client: int) -> dict[int, int]:
        """Return how many records of each class a client is known to hold, canaries included."""
        known = known_records(self.view, self.truth)
        parts = [*planted_records(self.view, self.truth, round=0), *([] if known is None else [known])]
        return sizes(parts, client=client)


def checks(runs: Sequence[Seen]) -> dict[str, Check]:
    """Return every check that the runs of a cell allow, by name."""
    found = [
        *_scale(runs),
        *_everywhere(runs),
        *_gaussian(runs),
        *_fresh(runs),
        *_clip(runs),
        *_sent(runs),
        *_by_count(runs),
    ]
    return dict(found)


# ---------------------------------------------------------------------- is there as much noise as claimed?


def noise(runs: Sequence[Seen]) -> dict[str, np.ndarray]:
    """Return all residuals, and those of each client, round, group and of real classes: a fault may be in one of them.

    Canaries have classes of their own, and many of them: a fault of the other classes is lost among these.
    """
    parts: dict[str, list[np.ndarray]] = {}
    for seen, one in ((seen, one) for seen, one in _each(runs) if one.scaled):
        labels = one.release.payload.tensors()["labels"]
        real = one.rows[labels < seen.view.run.info.num_classes]
        if 0 < len(real) < len(one.rows):
            parts.setdefault("noise of real classes", []).append(real.ravel())
        for name in noise_names(one.release):
            parts.setdefault(name, []).append(one.flat)
        if len(one.groups.stds) > 1:
            for group in np.unique(one.noisy).tolist():
                parts.setdefault(f"noise of group {group}", []).append(
                    one.rows[:, one.noisy == group].ravel()
                )
        if one.totals is not None:
            parts.setdefault("noise of the counts", []).append(one.totals)
        if one.moments is not None:
            parts.setdefault("noise of the moments", []).append(one.moments.ravel())
    return {name: np.concatenate(found) for name, found in parts.items()}


def noise_names(release: Release) -> tuple[str, str, str]:
    """Return the parts of all noise that the noise of a message belongs to."""
    return "noise", f"noise of client {release.client}", f"noise of round {release.round}"


def _scale(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    for name, found in noise(runs).items():
        says = f"the {name} is {scale_ratio(found):.3f} of what was claimed"
        yield name, Check(scale_p_value(found), says)


def _everywhere(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that no single vector, and no single coordinate, has less noise than claimed: all the others hide it."""
    scaled = [one for run in runs for one in run.left if one.scaled and one.rows.size]
    if not scaled:
        return
    rows = [(row, one, label) for one in scaled for row, label in zip(one.rows, _labels(one), strict=True)]
    which, p = least_scale([row for row, _, _ in rows])
    row, one, label = rows[which]
    says = f"the noise of class {label} of {_where(one)} is {scale_ratio(row):.3f} of what was claimed"
    yield "least noisy vector", Check(p, says)
    whole = _by_coordinate(scaled)
    which, p = least_scale(list(whole.values()))
    place = list(whole)[which]
    says = f"the noise of coordinate {place} is {scale_ratio(whole[place]):.3f} of what was claimed"
    yield "least noisy coordinate", Check(p, says)


def _by_coordinate(releases: Iterable[Left]) -> dict[int, np.ndarray]:
    """Return the noise on every coordinate that has some, in all rows of some releases."""
    columns: dict[int, list[np.ndarray]] = {}
    for one in releases:
        for place, column in zip(np.flatnonzero(one.groups.std_d > 0).tolist(), one.rows.T, strict=True):
            columns.setdefault(place, []).append(column)
    return {place: np.concatenate(found) for place, found in columns.items()}


def _gaussian(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that noise is Gaussian, of any scale for every vector (and group), or else of any for every coordinate.

    More noise than claimed on some coordinates hides no less, and makes a vector look like no Gaussian one.
    """
    found = [one for run in runs for one in run.left]
    vectors = [row[one.noisy == group] for one in found for group in np.unique(one.noisy) for row in one.rows]
    views = [parts for parts in (vectors, list(_by_coordinate(found).values())) if shape_gap(parts)[1]]
    if views:
        gap = min(shape_gap(parts)[0] for parts in views)
        says = f"the noise is not Gaussian: its distribution function is off by {gap:.3f}"
        yield "shape of the noise", Check(max(map(shape_p_value, views)), says)


def _labels(one: Left) -> list[int]:
    """Return the class of each row of a message."""
    return one.release.payload.tensors()["labels"].tolist()


# ---------------------------------------------------------------------- was it drawn anew?


def _fresh(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that no two runs, rounds, clients, classes or coordinates share noise; and the two most alike messages."""
    scaled = [[one for one in run.left if one.scaled] for run in runs]
    families = {
        "runs": _stacked((one for run in scaled for one in run), by=lambda r: (r.round, r.client)),
        "rounds": [g for run in scaled for g in _stacked(run, by=lambda r: r.client)],
        "clients": [g for run in scaled for g in _stacked(run, by=lambda r: r.round)],
        "classes": [one.rows for run in scaled for one in run if one.rows.size],
        "coordinates": [one.rows.T for run in scaled for one in run if one.rows.size],
    }
    for name, groups in families.items():
        if any(len(group) > 1 for group in groups):
            alike = common_share(groups)
            says = f"the noise of different {name} is not independent: correlation {alike:.3f} on average"
            yield f"noise shared by {name}", Check(common_p_value(groups), says)
    pairs = [most_alike([one.flat for one in run]) for run in scaled if len(run) > 1]
    if pairs:
        r = int(np.argmin([pair.p_value for pair in pairs]))
        pair, run = pairs[r], scaled[r]
        says = (
            f"the noise of {_where(run[pair.first])} and of {_where(run[pair.second])} is not independent: correlation "
            f"{pair.correlation:.3f}"
        )
        yield "most alike messages", Check(min(1.0, len(pairs) * pair.p_value), says)


def _stacked(messages: Iterable[Left], *, by: Callable[[Release], Hashable]) -> list[np.ndarray]:
    """Return the noise of the messages that have something in common as rows, as far as all of them go."""
    found: dict[Hashable, list[np.ndarray]] = {}
    for one in messages:
        found.setdefault(by(one.release), []).append(one.flat)
    shortest = {key: min(len(flat) for flat in each) for key, each in found.items()}
    return [
        np.array([flat[: shortest[key]] for flat in each]) for key, each in found.items() if shortest[key]
    ]


def _each(runs: Sequence[Seen]) -> Iterator[tuple[Seen, Left]]:
    return ((run, one) for run in runs for one in run.left)


def _where(one: Left) -> str:
    return f"client {one.release.client} in round {one.release.round}"


# ---------------------------------------------------------------------- was every record clipped?


def _clip(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that no mean, and no record that can be told from its class's mean, lies outside of the claimed set."""
    found = [(_reach(run, one), one) for run, one in _each(runs)]
    if found:
        most, one = max(found, key=lambda pair: pair[0])
        says = f"{_where(one)} averaged a record that is {most:.3f} times as far out as its clip is claimed to allow"
        yield "clip", Check(float(most <= 1 + ROUNDING), says)


def _reach(run: Seen, one: Left) -> float:
    client, canaries = one.release.client, run.view.questions["canaries"]
    planted = None if canaries is None else canary.planted(canaries, run.truth.canary_signs).of(client)
    known = known_records(run.view, run.truth) if _of_public_encoder(one) else None
    return max(longest(one, planted), 0.0 if known is None else farthest_known(one, known.of(client)))


def _of_public_encoder(one: Left) -> bool:
    """Return whether known records are, in the questions, under the encoder that a release was made with."""
    return all(leaf.contract.encoder is DependsOn.PUBLIC for leaf, _ in leaves(one.release.event))


# ---------------------------------------------------------------------- do counts say what they should?


def _sent(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that no class was released with a larger count than it has: its noise would be too small."""
    made, wrong = False, ""
    for run, one in _each(runs):
        counts = sent_counts(one)
        if counts is None or not run.held(one.release.client):
            continue
        made = True
        for count, true in overstated(run.view, run.truth, one, counts):
            wrong = wrong or f"{_where(one)} sent the count {count} of a class of {true} records"
    if made:
        yield "counts", Check(float(not wrong), wrong)


def _by_count(runs: Sequence[Seen]) -> Iterator[tuple[str, Check]]:
    """Check that the noise tells nothing of the counts, where the claim says that these are a secret."""
    rows, few = [], []
    for run, one in _each(runs):
        if not _secret_counts(one):
            continue
        held = run.held(one.release.client)
        labels = _labels(one)
        side = split_by_count(np.array([held.get(label, 0) for label in labels]))
        if side is not None:
            rows.append(one.rows)
            few.append(side)
    if rows:
        residuals_PD, few_P = np.concatenate(rows), np.concatenate(few)
        ratio = count_scale_ratio(residuals_PD, few_P)
        says = (
            f"the noise on classes of few records is {ratio:.3f} times that on classes of many, and the claim says "
            "that counts are a secret"
        )
        yield "noise by count", Check(count_scale_p_value(residuals_PD, few_P), says)


def _secret_counts(one: Left) -> bool:
    secret = (Counts.PRIVATE, Counts.NOT_USED)
    return any(leaf.contract.counts in secret for leaf, _ in leaves(one.release.event))
