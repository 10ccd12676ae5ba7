"""Checks of the noise on weights, by an auditor who holds what was sent out and what clients had before the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from accountant.contract import Query
from accountant.events import Gaussian, leaves
from accountant.relations import reach
from attacks.statistics.residuals import scale_p_value, scale_ratio
from attacks.statistics.shape import shape_gap, shape_p_value
from attacks.statistics.sharing import common_p_value, common_share, most_alike
from privkit.audit.white_box import ROUNDING, Check, Seen, noise_names
from privkit.errors import InputError
from privkit.release import Release, Update


@dataclass(frozen=True, eq=False)
class NoisyUpdate:
    """One message of weights, taken apart.

    Attributes:
        release: what was sent.
        noise: (sent - clipped) / claimed standard deviation, shape [D].
        reach: length of the change before noise, in clip norms.
    """

    release: Release
    noise: Float64[np.ndarray, " D"]
    reach: float


def noisy_updates(run: Seen) -> list[NoisyUpdate]:
    """Return the messages of a run whose noise is on a client's whole update, and was kept apart, in their order.

    Raises:
        InputError: what was kept does not fit what was sent.
    """
    return list(_noisy_updates(run))


def _noisy_updates(run: Seen) -> Iterator[NoisyUpdate]:
    for release in run.view.transcript.releases:
        hidden = run.truth.hidden.get((release.round, release.client))
        if hidden is None or hidden.received is None or not isinstance(release.payload, Update):
            continue
        for leaf, _ in leaves(release.event):
            norm = leaf.contract.clip_norm
            if (
                not isinstance(leaf, Gaussian)
                or leaf.contract.query is not Query.CLIENT_UPDATE
                or norm is None
            ):
                continue
            named = release.payload.named
            sent_D = np.concatenate([np.ravel(named[name]).astype(np.float64) for name in sorted(named)])
            if hidden.means.shape != (1, len(sent_D)) or hidden.received.shape != sent_D.shape:
                raise InputError(
                    f"{run.view.run.path}: truth/ of client {release.client} in round {release.round} does not fit "
                    "what was released; it was damaged or changed."
                )
            std = leaf.noise_multiplier * reach(Query.CLIENT_UPDATE, leaf.contract.relation) * norm
            change = float(np.linalg.norm(hidden.means[0] - hidden.received))
            yield NoisyUpdate(release, (sent_D - hidden.means[0]) / std, change / norm)


def weight_noise(runs: Sequence[Seen]) -> dict[str, Float64[np.ndarray, " _"]]:
    """Return all noise on weights, and that of each client and of each round: a fault may be in one of them."""
    parts: dict[str, list[np.ndarray]] = {}
    for one in (one for run in runs for one in noisy_updates(run)):
        for name in noise_names(one.release):
            parts.setdefault(name, []).append(one.noise)
    return {name: np.concatenate(found) for name, found in parts.items()}


def weight_checks(runs: Sequence[Seen]) -> dict[str, Check]:
    """Return every check of noise on weights that the runs of a cell allow, by name; none where there is no such noise.

    Each p-value is exact under the claim: the noise is as large as claimed, Gaussian and drawn anew, and no change was
    longer than the clip norm.
    """
    messages = [noisy_updates(run) for run in runs]
    if not any(messages):
        return {}
    return {**_scale(runs), **_shape(messages), **_fresh(messages), **_clip(messages)}


def _scale(runs: Sequence[Seen]) -> dict[str, Check]:
    return {
        name: Check(scale_p_value(found), f"the {name} is {scale_ratio(found):.3f} of what was claimed")
        for name, found in weight_noise(runs).items()
    }


def _shape(messages: list[list[NoisyUpdate]]) -> dict[str, Check]:
    rows = [one.noise for sent in messages for one in sent]
    gap, checked = shape_gap(rows)
    says = f"the noise is not Gaussian: its distribution function is off by {gap:.3f}"
    return {"shape of the noise": Check(shape_p_value(rows), says)} if checked else {}


def _fresh(messages: list[list[NoisyUpdate]]) -> dict[str, Check]:
    found: dict[str, Check] = {}
    for name, by in (("rounds", "client"), ("clients", "round")):
        groups = [group for sent in messages for group in _grouped(sent, by)]
        if any(len(group) > 1 for group in groups):
            alike = common_share(groups)
            says = f"the noise of different {name} is not independent: correlation {alike:.3f} on average"
            found[f"noise shared by {name}"] = Check(common_p_value(groups), says)
    pairs = [most_alike([one.noise for one in sent]) for sent in messages if len(sent) > 1]
    if pairs:
        p = min(1.0, len(pairs) * min(pair.p_value for pair in pairs))
        found["most alike messages"] = Check(p, "the noise of two messages is not independent")
    return found


def _grouped(sent: list[NoisyUpdate], by: str) -> list[np.ndarray]:
    """Return the noise of the messages of each client, or of each round, as rows."""
    found: dict[int, list[np.ndarray]] = {}
    for one in sent:
        found.setdefault(getattr(one.release, by), []).append(one.noise)
    return [np.stack(rows) for rows in found.values()]


def _clip(messages: list[list[NoisyUpdate]]) -> dict[str, Check]:
    most = max((one for sent in messages for one in sent), key=lambda one: one.reach)
    says = (
        f"client {most.release.client} in round {most.release.round} sent a change that is {most.reach:.3f} times as "
        "long as its clip is claimed to allow"
    )
    return {"clip": Check(float(most.reach <= 1 + ROUNDING), says)}
