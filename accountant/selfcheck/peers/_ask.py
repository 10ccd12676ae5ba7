"""Ask one peer many questions, in a process of its own: a hang or a crash costs that one answer."""

import math
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from accountant.selfcheck.case import Case
from accountant.selfcheck.peers import _questions
from accountant.selfcheck.peers._peer import CannotAnswerError, Peer


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a peer says to one case.

    Attributes:
        case: that was asked.
        value: its number; None if it gave none.
        reason: why it gave none.
    """

    case: Case
    value: float | None
    reason: str = ""


def ask(peer: Peer, cases: Sequence[Case], *, each_s: float, deadline: float) -> list[Answer]:
    """Return the answers of one peer.

    Args:
        peer: whom to ask.
        cases: what to ask; all of them are questions for it.
        each_s: seconds for one answer.
        deadline: time.monotonic() after which nothing more is asked.
    """
    found: list[Answer] = []
    child: _Child | None = None
    for case in cases:
        left = deadline - time.monotonic()
        if left <= 0:
            found.append(Answer(case=case, value=None, reason="no time left"))
            continue
        child = child or _Child(peer.name)
        answer = child.ask(case, wait_s=min(each_s, left))
        found.append(answer)
        if answer.value is None and not child.alive:
            child.end()
            child = None
    if child is not None:
        child.end()
    return found


class _Child:
    """A process in which a peer answers."""

    def __init__(self, name: str) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_answer_all, args=(name, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.alive = True

    def ask(self, case: Case, *, wait_s: float) -> Answer:
        """Return its answer, or why there is none."""
        try:
            self._pipe.send(case)
            if not self._pipe.poll(wait_s):
                self.alive = False
                return Answer(case=case, value=None, reason=f"no answer in {wait_s:.0f} s")
            value, reason = self._pipe.recv()
        except (EOFError, OSError):
            self.alive = False
            return Answer(case=case, value=None, reason="it crashed")
        return Answer(case=case, value=value, reason=reason)

    def end(self) -> None:
        """Stop it."""
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _answer_all(name: str, pipe: Connection) -> None:
    """Answer until nobody asks; runs in the child."""
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable()
    peer = _questions.peer_named(name)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(_one_answer(peer, case))


def _one_answer(peer: Peer, case: Case) -> tuple[float | None, str]:
    question: Any = _questions.question_for(peer, case)
    try:
        value = float(question())
    except CannotAnswerError as error:
        return None, str(error)
    except Exception as error:
        return None, f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
    return (value, "") if not math.isnan(value) else (None, "NaN")
