"""A split-learning study: the same client with an honest server and a malicious one, and what each rebuilds.

Both clients start from the same weights, send the same images in the same order, and train as many steps. Whoever
rebuilds has a decoder of one architecture, trained on the same public images for as many steps.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attacks import split as attack_code
from attacks.split._base import AbstractSplitServer
from attacks.split._honest import HonestSplitServer, passive_decoder
from attacks.split._nets import client_net, drawn
from attacks.statistics import pixels
from attacks.statistics.ratio import ratio_of_means
from privkit import atomic, by_content
from privkit.models._cache import sha256_of
from privkit.split.client import SplitClient
from privkit.split.parties import Parties, parties
from privkit.split.settings import SplitSettings
from reports.split_table import Rebuilder, SplitFindings

Progress = Callable[[str, int, int], None]
Rebuilt = dict[str, np.ndarray]
"""What each rebuilder made of the private images, by name, and the images themselves under :data:`PRIVATE`."""

PRIVATE = "private"
ACTIVE = "fsha"
KNOWS = {
    "mean picture of the class": "the labels that come along; no feature is looked at",
    "passive, same knowledge": "what fsha knows; a shadow client that starts from weights of its own",
    "passive, broadcast": "the weights that the client started from",
    "passive, shadow": "the weights that the client started from, and how it trains",
    "passive, client's own": "the client's final weights, which no server has: an upper bound",
}
_SHOWN = 10
_STREAMS = 100  # seeds of one study are this far apart


def study(
    settings: SplitSettings, root: Path, *, progress: Progress = lambda stage, done, total: None
) -> SplitFindings:
    """Return what was rebuilt, seed by seed; what a folder holds of the same study already is not computed again.

    Args:
        settings: the study.
        root: folder for ``seed-0.safetensors`` and so on.
        progress: called with a stage's name, how much of it is done, and of how much.

    Raises:
        InputError: the data are no images, or training left the finite numbers.
    """
    made = []
    for seed in range(settings.seeds):
        who = parties(settings, seed)
        path, key = root / f"seed-{seed}.safetensors", _key(settings, who, seed)
        found = by_content.read(path, key)
        if found is None:
            found = rebuild(settings, who, seed, progress)
            by_content.write(path, key, found)
        made.append({name: found[name] for name in (PRIVATE, *KNOWS, ACTIVE)})  # in the order of the table
    return _judged(settings, made)


def rebuild(
    settings: SplitSettings, who: Parties, seed: int, progress: Progress = lambda stage, done, total: None
) -> Rebuilt:
    """Return what every rebuilder makes of the private images of one seed, in their order."""
    base, public = _STREAMS * (seed + 1), who.public
    honest = HonestSplitServer(public, learning_rate=settings.server_rate, seed=base + 1)
    client = _trained(settings, who, honest, base, progress, "split learning, honest server")
    active = settings.attack.server(public, batch_size=settings.batch_size, seed=base + 3)
    hijacked = _trained(settings, who, active, base, progress, "split learning, malicious server")
    encoders = {
        "passive, same knowledge": _shadow(settings, who, base, base + 11, progress).net,
        "passive, broadcast": _start(settings, who, base),
        "passive, shadow": _shadow(settings, who, base, base, progress).net,
        "passive, client's own": client.net,
    }
    found = {PRIVATE: who.images.numpy(), "mean picture of the class": _class_means(who)}
    for name, encoder in encoders.items():
        decoder = passive_decoder(
            public,
            encoder,
            steps=settings.steps,
            batch_size=settings.batch_size,
            learning_rate=settings.server_rate,
            seed=base + 7,
        )
        found[name] = _decoded(decoder, client)
    return found | {ACTIVE: _decoded(active.decoder, hijacked)}


def _start(settings: SplitSettings, who: Parties, seed: int) -> nn.Module:
    """Return the client's layers as they are at first."""
    return drawn(lambda: client_net(who.public.shape, settings.channels), seed)


def _trained(
    settings: SplitSettings,
    who: Parties,
    server: AbstractSplitServer,
    seed: int,
    progress: Progress,
    stage: str,
) -> SplitClient:
    """Return the client after all steps with some server."""
    start = _start(settings, who, seed)
    client = SplitClient(start, who.images, who.labels, learning_rate=settings.learning_rate, seed=seed)
    return _after_all(client, server, settings, progress, stage)


def _shadow(settings: SplitSettings, who: Parties, seed: int, start: int, progress: Progress) -> SplitClient:
    """Return what the protocol makes of the server's own images, from the weights that some seed gives."""
    public = who.public
    client = SplitClient(
        _start(settings, who, start),
        public.images,
        public.labels,
        learning_rate=settings.learning_rate,
        seed=seed + 5,
    )
    server = HonestSplitServer(public, learning_rate=settings.server_rate, seed=seed + 1)
    return _after_all(client, server, settings, progress, "split learning, shadow client")


def _after_all(
    client: SplitClient, server: AbstractSplitServer, settings: SplitSettings, progress: Progress, stage: str
) -> SplitClient:
    """Return a client once it has trained."""
    progress(stage, 0, settings.steps)
    client.train(
        server,
        steps=settings.steps,
        batch_size=settings.batch_size,
        after_step=lambda step: progress(stage, step, settings.steps),
    )
    return client


@torch.no_grad()
def _decoded(decoder: nn.Module, client: SplitClient) -> np.ndarray:
    """Return what a decoder makes of everything that a client sends."""
    return torch.cat([decoder(block) for block in client.sent().split(512)]).numpy()


def _class_means(who: Parties) -> np.ndarray:
    """Return, for each private image, the mean public image of its class; the mean of all where there is none."""
    public, found = who.public, []
    for label in who.labels.tolist():
        mine = public.images[public.labels == label]
        found.append((mine if len(mine) else public.images).mean(0))
    return torch.stack(found).numpy()


# ---------------------------------------------------------------------- judged


def _judged(settings: SplitSettings, made: list[Rebuilt]) -> SplitFindings:
    """Return the errors of every rebuilder over all images of all seeds, and how FSHA's compare."""
    errors = {name: [_errors(found, name) for found in made] for name in made[0] if name != PRIVATE}
    active = errors[ACTIVE]
    rows = []
    for name, each in errors.items():
        whole = np.concatenate(each)
        ratio = None if name == ACTIVE else ratio_of_means(np.concatenate(active), whole, seed=0)
        rows.append(
            Rebuilder(
                name=name,
                knows=KNOWS.get(name, "; ".join(settings.attack.knows)),
                mse=float(whole.mean()),
                psnr=float(np.mean([pixels.psnr(float(error)) for error in whole])),
                ssim=float(np.mean([_ssim(found, name) for found in made])),
                ratio=ratio,
                by_seed=tuple(float(a.mean() / e.mean()) for a, e in zip(active, each, strict=True)),
            )
        )
    shown = _one_of_each(made[0])
    return SplitFindings(
        rebuilders=tuple(rows),
        images=sum(len(found[PRIVATE]) for found in made),
        seeds=len(made),
        shown={name: array[shown] for name, array in made[0].items()},
    )


def _errors(found: Rebuilt, name: str) -> np.ndarray:
    """Return the mean squared error of every image."""
    return ((found[name] - found[PRIVATE]) ** 2).mean((1, 2, 3), dtype=np.float64)


def _ssim(found: Rebuilt, name: str) -> float:
    """Return the mean SSIM over all images."""
    both = zip(found[name], found[PRIVATE], strict=True)
    return float(np.mean([pixels.ssim(one, real) for one, real in both]))


def _one_of_each(found: Rebuilt) -> np.ndarray:
    """Return rows spread evenly over all images."""
    count = len(found[PRIVATE])
    return np.linspace(0, count - 1, min(_SHOWN, count)).round().astype(int)


# ---------------------------------------------------------------------- kept by content


def _key(settings: SplitSettings, who: Parties, seed: int) -> str:
    """Return the sha256 of everything that what is rebuilt depends on."""
    plain = settings.model_dump(mode="json", exclude={"seeds"})
    images = [sha256_of(x.numpy()) for x in (who.images, who.labels, who.public.images, who.public.labels)]
    content = [plain, seed, images, _code(), torch.__version__]
    return hashlib.sha256(atomic.canonical_json(content).encode()).hexdigest()


@cache
def _code() -> str:
    """Return the sha256 of the code that rebuilds: images that other code rebuilt are rebuilt again."""
    files = [*sorted(Path(attack_code.__path__[0]).glob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
