"""What feature inversion rebuilds from a cell's releases, judged by the truth.

The attacker's part, :func:`rebuild`, has no room for the truth. What it rebuilds is judged under each client's own
final encoder, whatever encoder the attacker held, so that the tiers can be compared: the class means are those of
the member embeddings under that encoder, before clip and noise. Under a frozen encoder that is the public one.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accountant.contract import DependsOn
from attacks import hijack
from attacks._base import NotApplicableError
from attacks.hijack.inversion import Attempts, FeatureInversion, Goal
from attacks.statistics import reconstruction
from privkit import atomic, tensors
from privkit.audit._inverted_pictures import member_images, png
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
    attack: FeatureInversion,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> Inversion:
    """Return what an inversion got out of a cell, or the reason why it got nothing.

    What was rebuilt is kept in ``audit/inversion-<tier>.safetensors`` of each run, batch by batch: a second
    audit computes nothing anew, and one that was killed goes on.

    Args:
        cell: whose runs.
        views: the runs, read.
        answers: the truth of each.
        attack: which inversion; the first ``attack.seeds`` runs are attacked.
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
    return _findings(attack, judged, seeds=min(attack.seeds, len(views)))


def rebuild(
    view: RunView,
    attack: FeatureInversion,
    config: RunConfig,
    *,
    progress: Progress = lambda stage, done, total: None,
) -> tuple[list[Goal], Attempts]:
    """Return what was to be rebuilt from a run, and the best attempt at each; the truth is not read.

    Returns:
        goals: the prototypes, and then as many random directions in the same order.
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
    path = view.run.path / "audit" / f"{attack.name}-{attack.tier}.safetensors"
    key = _key(view, attack, config, goals, encoders)
    parts = [kept] if (kept := _read(path, key)) is not None else []
    done = sum(len(part) for part in parts)
    stage = f"{view.run.info.cell}: {attack.name}, {attack.tier} encoder"
    steps = _throttled(lambda now, total: progress(stage, now, total))
    for part in attack.rebuild(goals, encoders, image_shape=shape, seed=seed, done=done, progress=steps):
        parts.append(part)
        _write(path, key, Attempts.joined(parts))
    return goals, Attempts.joined(parts).best_of(attack.restarts)


def _throttled(progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Return a progress function that passes on the first call, the last, and some two hundred between."""

    def now_and_then(done: int, total: int) -> None:
        if done == total or done % max(1, total // 200) == 0:
            progress(done, total)

    return now_and_then


def _config(cell: Cell, attack: FeatureInversion) -> RunConfig:
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
class _Members:
    """What one client trained on: images, and embeddings under its own final encoder."""

    images: np.ndarray
    z: np.ndarray
    labels: np.ndarray

    def of(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the images and the embeddings of one class."""
        mine = self.labels == label
        return self.images[mine], self.z[mine]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Judged:
    """One target, judged: what is shown of it, and what is only averaged.

    Attributes:
        rebuilt: what is shown.
        cffd, cffd_random, cffd_least: Frechet distance of its embedding, of the random direction's, and of the
            class mean itself, to the class.
        undone: whether the released vector itself is nearest to its own class mean.
        classes: classes the client has.
    """

    rebuilt: Rebuilt
    cffd: float
    cffd_random: float
    cffd_least: float
    undone: bool
    classes: int


def _judged(
    view: RunView, truth: Truth, attack: FeatureInversion, config: RunConfig, progress: Progress
) -> list[_Judged]:
    """Return every target of one run, judged."""
    from privkit.audit._inverted_encoders import held

    goals, best = rebuild(view, attack, config, progress=progress)
    own = held("client", view, config)
    members = _members(view, truth, config, own)
    z = _embedded(own, best.images, goals)
    half = len(goals) // 2
    return [_one(goals[i], members[goals[i].client], best, z, i, i + half) for i in range(half)]


def _embedded(own: "Encoders", images: np.ndarray, goals: list[Goal]) -> np.ndarray:
    """Return the embedding of each rebuilt image under its client's own encoder, float64 of shape [N, d]."""
    import torch

    with torch.no_grad():
        clients = torch.tensor([goal.client for goal in goals])
        return own(torch.from_numpy(images), clients).double().numpy()


def _members(view: RunView, truth: Truth, config: RunConfig, own: "Encoders") -> dict[int, _Members]:
    """Return what each client trained on."""
    asked: Records | None = view.questions["records"]
    if asked is None or not truth.members.any():
        raise NotApplicableError("truth/ names no members to judge by; restore truth/ or train again")
    members = asked.where(truth.members)
    images, z = member_images(view.run, config, members), own.embedded(members)
    return {
        m: _Members(images=images[mine], z=z[mine], labels=members.labels[mine])
        for m in np.unique(members.clients).tolist()
        for mine in [members.clients == m]
    }


def _one(goal: Goal, mine: _Members, best: Attempts, z: np.ndarray, row: int, control: int) -> _Judged:
    """Return one target judged: ``row`` is its own best attempt, ``control`` that of its random direction."""
    labels, means = reconstruction.class_means(mine.z, mine.labels)
    own = np.flatnonzero(labels == goal.label)
    images, real = mine.of(goal.label)
    mean, centre = means[own], means.mean(0)
    nearest = int(reconstruction.cosines(np.repeat(z[[row]], len(real), axis=0), real).argmax())
    rebuilt = Rebuilt(
        client=goal.client,
        label=goal.label,
        to_released=float(best.cosines[row]),
        to_clean=_first(reconstruction.cosines(z[[row]], mean)),
        centred=_first(reconstruction.centred_cosines(z[[row]], mean, centre_d=centre)),
        random=_first(reconstruction.cosines(z[[control]], mean)),
        between=float(reconstruction.between_classes(means)[own[0]]),
        hit=bool(reconstruction.hits(z[[row]], means, own)[0]),
        steps=int(best.steps[row]),
        converged=bool(best.converged[row]),
        picture=png(best.images[row]),
        nearest=png(images[nearest] / 255),
        mean=png(images.mean(0) / 255),
    )
    return _Judged(
        rebuilt=rebuilt,
        cffd=reconstruction.frechet_of(z[[row]], real),
        cffd_random=reconstruction.frechet_of(z[[control]], real),
        cffd_least=float(np.trace(reconstruction.covariance(real))),
        undone=bool(reconstruction.hits(goal.vector[None], means, own)[0]),
        classes=len(labels),
    )


def _first(array: np.ndarray) -> float:
    return float(array[0])


def _findings(attack: FeatureInversion, judged: list[_Judged], *, seeds: int) -> Inversion:
    """Return the means over all targets of all runs."""
    shown = [one.rebuilt for one in judged]
    return Inversion(
        attack=attack.name,
        tier=attack.tier,
        who=attack.who,
        knows=attack.knows,
        target=attack.target,
        budget=_budget(attack, len(judged) // seeds),
        seeds=seeds,
        cosine=float(np.mean([one.to_clean for one in shown])),
        cosine_random=float(np.mean([one.random for one in shown])),
        cosine_between=float(np.mean([one.between for one in shown])),
        cosine_released=float(np.mean([one.to_released for one in shown])),
        centred=float(np.mean([one.centred for one in shown])),
        cffd=float(np.mean([one.cffd for one in judged])),
        cffd_random=float(np.mean([one.cffd_random for one in judged])),
        cffd_least=float(np.mean([one.cffd_least for one in judged])),
        top1=reconstruction.top1(
            np.array([one.hit for one in shown]), classes=min(one.classes for one in judged)
        ),
        top1_undone=float(np.mean([one.undone for one in judged])),
        rebuilt=tuple(shown),
    )


def _budget(attack: FeatureInversion, targets: int) -> str:
    all_there_are = "" if targets == attack.targets else f" (all there are; {attack.targets} were asked for)"
    return (
        f"{targets} targets per run{all_there_are} and as many random directions, {attack.restarts} restarts, "
        f"at most {attack.steps} steps"
    )


# ---------------------------------------------------------------------- kept by content


def _key(
    view: RunView, attack: FeatureInversion, config: RunConfig, goals: list[Goal], encoders: "Encoders"
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
    ]
    return hashlib.sha256(atomic.canonical_json(content).encode()).hexdigest()


@cache
def _code() -> str:
    """Return the sha256 of the attack's code: images that other code rebuilt are rebuilt again."""
    files = sorted(Path(hijack.__path__[0]).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _write(path: Path, key: str, attempts: Attempts) -> None:
    named = {**vars(attempts), "key": np.frombuffer(key.encode(), dtype=np.uint8)}
    tensors.write(path, named, durable=False)


def _read(path: Path, key: str) -> Attempts | None:
    """Return the attempts a file holds if they were made from the same content, else nothing."""
    if not path.exists():
        return None
    try:
        named = tensors.read(path, "key", *Attempts.__dataclass_fields__)
    except InputError:
        return None
    if named.pop("key").tobytes() != key.encode():
        return None
    return Attempts(**named)
