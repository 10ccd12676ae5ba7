"""Which cases are questions that a peer can be asked, and how."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from accountant.selfcheck import peers
from accountant.selfcheck.case import Case
from accountant.selfcheck.laws import calibrations, promises
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.peers._peer import Peer
from accountant.selfcheck.privacy import NotUnderstoodError
from accountant.selfcheck.registry import Question, question


def installed() -> list[Peer]:
    """Return the peers that can be asked here, by name of their file."""
    names = sorted(module.name for module in iter_modules(peers.__path__) if not module.name.startswith("_"))
    found = [peer for name in names for peer in import_module(f"{peers.__name__}.{name}").PEERS]
    return [peer for peer in found if peer.installed]


def peer_named(name: str) -> Peer:
    """Return an installed peer."""
    return next(peer for peer in installed() if peer.name == name)


def question_for(peer: Peer, case: Case) -> Callable[[], float] | None:
    """Return how a peer is asked a case; None if the case is none for it."""
    if case.kind == "must_raise":
        if peer.of_sigma is None or set(case.params) != {"sigma"}:
            return None
        return partial(peer.of_sigma, sigma=number(case.params["sigma"]))
    if "conversion" in case.params or case.name.startswith("rdp_"):
        return None
    try:
        asked = question(case.kind, case.params)
        return _ASK[asked.rule.compute](peer, asked) if asked.rule.compute in _ASK else None
    except (NotUnderstoodError, ValueError):
        return None


def _epsilon(peer: Peer, asked: Question) -> Callable[[], float] | None:
    return _of_privacy(peer.epsilon, asked, delta=number(asked.asked["delta"]))


def _delta(peer: Peer, asked: Question) -> Callable[[], float] | None:
    return peer.delta and _of_privacy(peer.delta, asked, epsilon=number(asked.asked["epsilon"]))


def _advantage(peer: Peer, asked: Question) -> Callable[[], float] | None:
    return peer.advantage and _of_privacy(peer.advantage, asked)


def _tpr(peer: Peer, asked: Question) -> Callable[[], float] | None:
    return peer.tpr and _of_privacy(peer.tpr, asked, fpr=number(asked.asked["fpr"]))


def _of_privacy(answer: Any, asked: Question, **at: float) -> Callable[[], float] | None:
    if answer.dispatch(type(asked.privacy)) is answer.dispatch(object):
        return None
    return partial(answer, asked.privacy, **at)


def _sigma(peer: Peer, asked: Question) -> Callable[[], float] | None:
    if peer.sigma is None or "relation" in asked.asked:
        return None
    return partial(
        peer.sigma,
        epsilon=number(asked.asked["epsilon"]),
        delta=number(asked.asked["delta"]),
        rounds=whole(asked.asked.get("T", 1)),
    )


_ASK: dict[Callable[..., Any], Callable[[Peer, Question], Callable[[], float] | None]] = {
    promises.epsilon: _epsilon,
    promises.delta: _delta,
    promises.advantage: _advantage,
    promises.tpr: _tpr,
    calibrations.sigma: _sigma,
}
