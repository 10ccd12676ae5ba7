"""What attacks that rebuild images get out of a cell's releases, judged by the truth.

The attacker's part, :func:`rebuild`, has no room for the truth. What it rebuilds is judged under each client's own
final encoder, whatever encoder the attacker held, so that the tiers can be compared: the class means are those of
the member embeddings under that encoder, before clip and noise. Under a frozen encoder that is the public one.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accountant.contract import DependsOn
from attacks import hijack
from attacks._base import NotApplicableError
from attacks.hijack._attempts import Attempts
from attacks.hijack._base import AbstractHijack, Pictures
from attacks.hijack._goals import Goal
from attacks.statistics import pixels, reconstruction
from privkit import atomic, by_content
from privkit.audit._inverted_pictures import asked, owned, pictures, png
from privkit.audit.cells import Cell
from privkit.audit.scored import RunView
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.methods._base import Sends
from privkit.models._cache import sha256_of
from privkit.transcript import Records
from privkit.truth import Truth
from reports.findings import Inversion, Rebuilt

if TYPE_CHECKING:
    from privkit.audit._inverted_encoders import Encoders

Progress = Callable[[str, int, int], None]

_WITHOUT_ADAPTERS = {"adapter": None, "inside": False}


def invert(
    cell: Cell,
    views: Sequence[RunView],
    answers: Sequence[Truth],
    attack: AbstractHijack,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> Inversion:
    """Return what an attack that rebuilds images got out of a cell, or the reason why it got nothing.

    What was rebuilt is kept in ``audit/<attack>-<tier>.safetensors`` of each run, part by part: a second
    audit computes nothing anew, and one that was killed goes on.

    Args:
        cell: whose runs.
        views: the runs, read.
        answers: the truth of each.
        attack: which; the first ``attack.seeds`` runs are attacked.
        progress: called with a stage's name, how much of it is done, and of how much.
    """
    try:
        config = _config(cell, attack)
        judged = [
            one
            for view, truth in list(zip(views, answers, strict=True))[: attack.seeds]
            for one in _judged(view, truth, attack, config, progress)
        ]
    except (NotApplicableError, InputError) as reason:
        return Inversion(
            attack=attack.name, tier=attack.tier, who=attack.who, knows=attack.knows, reason=str(reason)
        )
    return _findings(attack, config, judged, seeds=min(attack.seeds, len(views)))


def rebuild(
    view: RunView,
    attack: AbstractHijack,
    config: RunConfig,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> tuple[list[Goal], Attempts]:
    """Return what was to be rebuilt from a run, and the best attempt at each; the truth is not read.

    Returns:
        goals: the prototypes, each followed by a random direction.
        attempts: one per goal.

    Raises:
        NotApplicableError: the run has nothing that the attack needs.
        InputError: the encoder gives no gradients, or a file of the run is damaged.
    """
    from privkit.audit._inverted_encoders import held

    seed, shape = view.run.info.seed or 0, config.encoder.image_shape
    attack.refuse_large(shape)
    server = view.transcript.seen_by_server(view.reference)
    goals = attack.goals(server, num_classes=view.run.info.num_classes, seed=seed)
    encoders = held(attack.tier, view, config)
    mine = _owned(view, config) if attack.reads_pictures else None
    path = view.run.path / "audit" / f"{attack.name}-{attack.tier}.safetensors"
    key = _key(view, attack, config, goals, encoders, mine)
    parts = [kept] if (kept := _read(path, key)) is not None else []
    done = sum(len(part) for part in parts)
    stage = f"{view.run.info.cell}: {attack.name}, {attack.tier} encoder"
    steps = _throttled(lambda now, total: progress(stage, now, total))
    made = attack.rebuild(
        goals, encoders, image_shape=shape, seed=seed, owned=mine, done=done, progress=steps
    )
    for part in made:
        parts.append(part)
        by_content.write(path, key, vars(Attempts.joined(parts)))
    return goals, Attempts.joined(parts).best_of(attack.per_goal)


def _owned(view: RunView, config: RunConfig) -> Pictures | None:
    """Return the images that the attacker owns, if any: of every domain, held by no client."""
    if view.reference is None or not len(view.reference):
        return None
    return pictures(view.run, config, view.reference, owned)


def _throttled(progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Return a progress function that passes on the first call, the last, and some two hundred between."""

    def now_and_then(done: int, total: int) -> None:
        if done == total or done % max(1, total // 200) == 0:
            progress(done, total)

    return now_and_then


def _config(cell: Cell, attack: AbstractHijack) -> RunConfig:
    """Return what the cell's runs were trained from, as far as releases tell of it; nothing to invert is refused."""
    settings = dict(cell.first.info.config)
    if not {"data", "encoder", "model"} <= set(settings):
        raise NotApplicableError("recorded by other code: no encoder to invert")
    config = RunConfig.from_settings(settings, where=str(cell.first.path))
    if not config.method.uploads:
        raise NotApplicableError("nothing was released")
    if config.method.sends is Sends.WEIGHTS:
        raise NotApplicableError("clients sent trained weights, not prototypes")
    if config.mixed is not None:
        raise NotApplicableError(
            "inversion knows one encoder for all clients, and this run mixes architectures"
        )
    if config.method.encoder_depends_on(config.model) is DependsOn.PUBLIC:
        # what is released is what the frozen backbone gives: adapters that are trained beside it are no part of it
        config = config.model_copy(update={"model": config.model.model_copy(update=_WITHOUT_ADAPTERS)})
    if config.model.inside:
        raise NotApplicableError(
            "inversion knows adapters after the encoder, and this run has them inside every block of it"
        )
    if config.model.adapter is None and attack.tier != "public":
        raise NotApplicableError(
            "the encoder is frozen: this attacker holds the same one as in tier public, and rebuilds the same images"
        )
    return config


# ---------------------------------------------------------------------- judged by the truth


@dataclass(frozen=True, eq=False, kw_only=True)
class _Held:
    """Records of one client: pictures, classes, and embeddings under its own final encoder."""

    pictures: np.ndarray
    labels: np.ndarray
    z: np.ndarray

    def of(self, label: int) -> "_Held":
        """Return those of one class."""
        return self.where(self.labels == label)

    def where(self, mask: np.ndarray) -> "_Held":
        """Return those that a boolean mask names."""
        return _Held(pictures=self.pictures[mask], labels=self.labels[mask], z=self.z[mask])


@dataclass(frozen=True, eq=False, kw_only=True)
class _Client:
    """What one client trained on, and exchangeable records that it did not train on."""

    members: _Held
    others: _Held


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """One target, judged: what is shown of it, and what is only averaged.

    Attributes:
        rebuilt: what is shown.
        averaged: by the name of a mean in ``Inversion``; not a number where a target has none.
        undone: whether the released vector itself is nearest to its own class mean.
        classes: classes the client has.
    """

    rebuilt: Rebuilt
    averaged: dict[str, float]
    undone: bool
    classes: int


def _judged(
    view: RunView, truth: Truth, attack: AbstractHijack, config: RunConfig, progress: Progress
) -> list[_Judged]:
    """Return every target of one run, judged."""
    from privkit.audit._inverted_encoders import held

    goals, best = rebuild(view, attack, config, progress=progress)
    own = held("client", view, config)
    clients = _clients(view, truth, config, own)
    z = _embedded(own, best.images, goals)
    return [_one(goals[i], clients[goals[i].client], best, z, i) for i in range(0, len(goals), 2)]


def _embedded(own: "Encoders", images: np.ndarray, goals: list[Goal]) -> np.ndarray:
    """Return the embedding of each rebuilt image under its client's own encoder, float64 of shape [N, d]."""
    import torch

    with torch.no_grad():
        clients = torch.tensor([goal.client for goal in goals])
        return own(torch.from_numpy(images), clients).double().numpy()


def _clients(view: RunView, truth: Truth, config: RunConfig, own: "Encoders") -> dict[int, _Client]:
    """Return what each client trained on, and what it did not."""
    questions: Records | None = view.questions["records"]
    if questions is None or not truth.members.any():
        raise NotApplicableError("truth/ names no members to judge by; restore truth/ or train again")
    all_held = _Held(
        pictures=pictures(view.run, config, questions, asked),
        labels=questions.labels,
        z=own.embedded(questions),
    )
    return {
        m: _Client(members=all_held.where(mine & truth.members), others=all_held.where(mine & ~truth.members))
        for m in np.unique(questions.clients[truth.members]).tolist()
        for mine in [questions.clients == m]
    }


def _one(goal: Goal, client: _Client, best: Attempts, z: np.ndarray, row: int) -> _Judged:
    """Return one target judged: ``row`` is its own best attempt, the next one that of its random direction."""
    labels, means = reconstruction.class_means(client.members.z, client.members.labels)
    own = np.flatnonzero(labels == goal.label)
    real, mean = client.members.of(goal.label), means[own]
    mine, control = z[[row]], z[[row + 1]]
    nearest = int(reconstruction.cosines(np.repeat(mine, len(real.z), axis=0), real.z).argmax())
    seen = _pixels(
        best.images[row], best.images[row + 1], real.pictures, client.others.of(goal.label).pictures
    )
    rebuilt = Rebuilt(
        client=goal.client,
        label=goal.label,
        to_released=float(best.cosines[row]),
        to_clean=_first(reconstruction.cosines(mine, mean)),
        centred=_first(reconstruction.centred_cosines(mine, mean, centre_d=means.mean(0))),
        random=_first(reconstruction.cosines(control, mean)),
        between=float(reconstruction.between_classes(means)[own[0]]),
        hit=bool(reconstruction.hits(mine, means, own)[0]),
        steps=int(best.steps[row]),
        converged=bool(best.converged[row]),
        picture=png(best.images[row]),
        nearest=png(real.pictures[nearest]),
        mean=png(real.pictures.mean(0)),
        psnr=seen["psnr"],
        ssim=seen["ssim"],
        rank=int(seen["rank"]),
    )
    return _Judged(
        rebuilt=rebuilt,
        averaged=seen
        | {
            "cffd": reconstruction.frechet_of(mine, real.z),
            "cffd_random": reconstruction.frechet_of(control, real.z),
            "cffd_least": float(np.trace(reconstruction.covariance(real.z))),
        },
        undone=bool(reconstruction.hits(goal.vector[None], means, own)[0]),
        classes=len(labels),
    )


def _pixels(
    picture: np.ndarray, random: np.ndarray, members: np.ndarray, others: np.ndarray
) -> dict[str, float]:
    """Return how near a rebuilt picture comes to a member, beside its floors.

    Args:
        picture: what was rebuilt.
        random: what was rebuilt from a random direction.
        members: pictures of the class that the client trained on.
        others: exchangeable ones of the same class that it did not train on.
    """
    # what anybody draws who knows the class alone
    floors = {"": picture, "_random": random} | ({"_class": others.mean(0)} if len(others) else {})
    found = {"psnr_class": np.nan, "ssim_class": np.nan}
    for floor, shown in floors.items():
        squares = pixels.mean_squares(shown, members)
        found[f"psnr{floor}"] = pixels.psnr(float(squares.min()))
        found[f"ssim{floor}"] = pixels.ssim(shown, members[squares.argmin()])
    found["rank"] = float(pixels.nearest_rank(picture, members, others))
    found["rank_chance"] = pixels.rank_by_chance(len(members), len(others))
    return found


def _first(array: np.ndarray) -> float:
    return float(array[0])


def _findings(attack: AbstractHijack, config: RunConfig, judged: list[_Judged], *, seeds: int) -> Inversion:
    """Return the means over all targets of all runs."""
    shown, each = [one.rebuilt for one in judged], len(judged) // seeds
    found = Inversion(
        attack=attack.name,
        tier=attack.tier,
        who="malicious server" if config.answering.malicious else attack.who,
        knows=attack.knows,
        target=attack.target,
        budget=_budget(attack, each),
        seeds=seeds,
        cosine=float(np.mean([one.to_clean for one in shown])),
        cosine_random=float(np.mean([one.random for one in shown])),
        cosine_between=float(np.mean([one.between for one in shown])),
        cosine_released=float(np.mean([one.to_released for one in shown])),
        centred=float(np.mean([one.centred for one in shown])),
        top1=reconstruction.top1(
            np.array([one.hit for one in shown]), classes=min(one.classes for one in judged)
        ),
        top1_undone=float(np.mean([one.undone for one in judged])),
        of_run=tuple(_of_run(judged[i : i + each]) for i in range(0, len(judged), each)),
        rebuilt=tuple(shown),
    )
    means = {name: _mean([one.averaged[name] for one in judged]) for name in judged[0].averaged}
    return replace(found, **means)  # pyright: ignore[reportArgumentType]


def _of_run(judged: list[_Judged]) -> dict[str, float]:
    """Return the means over the targets of one run that two cells are compared by."""
    shown = [one.rebuilt for one in judged]
    return {
        "cosine": float(np.mean([one.to_clean for one in shown])),
        "centred": float(np.mean([one.centred for one in shown])),
        "top1": float(np.mean([one.hit for one in shown])),
        **{name: float(np.mean([one.averaged[name] for one in judged])) for name in ("psnr", "ssim", "rank")},
    }


def _mean(values: list[float]) -> float | None:
    """Return the mean of those that are numbers, if any."""
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.mean(numbers)) if numbers else None


def _budget(attack: AbstractHijack, targets: int) -> str:
    all_there_are = "" if targets == attack.targets else f" (all there are; {attack.targets} were asked for)"
    return f"{targets} targets per run{all_there_are} and as many random directions, {attack.effort}"


# ---------------------------------------------------------------------- kept by content


def _key(
    view: RunView,
    attack: AbstractHijack,
    config: RunConfig,
    goals: list[Goal],
    encoders: "Encoders",
    mine: Pictures | None,
) -> str:
    """Return the sha256 of everything that what is rebuilt depends on."""
    content = [
        attack.model_dump(mode="json", exclude={"seeds"}),
        _code(),
        view.run.anchor.head,
        [[goal.client, goal.label, goal.control, sha256_of(goal.vector)] for goal in goals],
        config.encoder.settings(),
        config.encoder.fingerprint,
        encoders.digest(),
        None if mine is None else sha256_of(mine),
    ]
    return hashlib.sha256(atomic.canonical_json(content).encode()).hexdigest()


@cache
def _code() -> str:
    """Return the sha256 of the attack's code: images that other code rebuilt are rebuilt again."""
    files = sorted(Path(hijack.__path__[0]).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _read(path: Path, key: str) -> Attempts | None:
    """Return the attempts a file holds if they were made from the same content, else nothing."""
    named = by_content.read(path, key)
    return None if named is None else Attempts(**named)
