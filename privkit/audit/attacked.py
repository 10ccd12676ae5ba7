"""Run every attack on a cell, and every test of its noise; what broke is told, the others go on."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from attacks._base import BEYOND, AbstractAttack, NotApplicableError
from attacks._known_noise import sent_instead
from attacks._models import shows_models, unsent
from attacks.hijack._base import AbstractHijack
from attacks.statistics.residuals import Squares
from privkit.audit import taken
from privkit.audit.by_round import Progress
from privkit.audit.choice import Attack
from privkit.audit.chosen import choices
from privkit.audit.compared import compared
from privkit.audit.inverted import invert
from privkit.audit.left import left
from privkit.audit.noisy_gradients import gradient_checks, gradient_noise
from privkit.audit.noisy_weights import weight_checks, weight_noise
from privkit.audit.promised import worst_event
from privkit.audit.white_box import Seen, checks, noise
from privkit.audit.work import Work, ceiling
from reports.findings import Inversion, Taken

_UNASKED = {
    "records": "the run has no records to ask about; name some with recorder.ask(...), or split in a configuration",
    "canaries": "the run has no canaries to ask about; set canaries.count above 0, or give Recorder canaries=...",
}
_UNPLANTED = "the run has no such canaries; add {{name: {0}}} to other_canaries"


def attack_cell(work: Work, attacks: Sequence[Attack], progress: Progress) -> list[str]:
    """Run every attack on a cell; return a sentence for each that broke."""
    answers = taken.truths(work.cell, work.views)
    seen = [Seen(view, truth, left(view, truth)) for view, truth in zip(work.views, answers, strict=True)]
    look_inside(work, seen)
    failed, unplanted = [], []
    prepare(work, attacks, progress)
    tried = Counter(attack.family for attack in attacks if isinstance(attack, AbstractAttack))
    for done, attack in enumerate(attacks):
        progress("audit", done, len(attacks))
        if isinstance(attack, AbstractHijack):
            failed += _invert(work, attack, answers, progress)
            continue
        if _about_nothing(work, attack):
            continue
        if reason := _unasked(work, attack):
            # kinds of canaries are planted for what they test: one that was not is no gap in a table
            (work.found if attack.asks_about in _UNASKED else unplanted).append(_nothing(attack, reason))
            continue
        try:
            work.found.append(_one_attack(work, attack, answers, tried[attack.family]))
        except NotApplicableError as reason:
            work.found.append(_nothing(attack, str(reason)))
        except Exception as error:
            failed.append(f"{attack.label} on {work.cell.name}: {type(error).__name__}: {error}")
            work.found.append(_nothing(attack, f"failed: {error}"))
    if not work.found and not work.inversions:
        work.found += unplanted
    return failed


def look_inside(work: Work, seen: Sequence[Seen]) -> None:
    """Make every check that what was computed before the noise allows, and look for vectors that were sent twice."""
    residuals, sent = (noise(seen) | weight_noise(seen)).get("noise"), gradient_noise(seen)
    work.noise = sent.get("noise") if residuals is None else Squares.of(residuals)
    work.checks = checks(seen) | choices(work.cell, seen) | weight_checks(seen) | gradient_checks(sent)
    work.p_values |= {name: check.p_value for name, check in work.checks.items()}
    work.repeated = [found for view in work.views if (found := taken.repeated(view))]


def prepare(work: Work, attacks: Sequence[Attack], progress: Progress) -> None:
    """Score what is cheaper to score with all attacks at once."""
    for view in work.views:
        view.prepare([attack for attack in attacks if isinstance(attack, AbstractAttack)], progress)


def keep_scores(work: Work, attacks: Sequence[Attack]) -> None:
    """Keep in ``audit/`` what every attack scores the candidates of a cell; no score needs ``truth/``."""
    prepare(work, attacks, lambda stage, done, total: None)
    for attack in attacks:
        if isinstance(attack, AbstractHijack) or _unasked(work, attack):
            continue
        for view in work.views:
            # why an attack has none is said where there is a truth to judge by
            with suppress(Exception):
                view.score(attack)


def _about_nothing(work: Work, attack: AbstractAttack) -> bool:
    """Return whether an attack reads what no server of such a run is sent: there is nothing to say of it."""
    if any(attack.reads not in view.reads for view in work.views):
        return True
    return (
        attack.reads == "weights"
        and attack.assumed.tier not in BEYOND
        and not any(shows_models(view.transcript.seen_by_server()) for view in work.views)
    )


def _unasked(work: Work, attack: AbstractAttack) -> str:
    """Return why there is nothing to ask an attack about, or nothing."""
    if all(view.questions.get(attack.asks_about) is not None for view in work.views):
        return ""
    sent = sent_instead(work.views[0].transcript.seen_by_server())
    if sent and attack.reads == "prototypes":
        return f"canaries do not apply: {sent}" if attack.about_canaries else sent
    return _UNASKED.get(attack.asks_about) or _UNPLANTED.format(attack.asks_about)


def _invert(work: Work, attack: AbstractHijack, answers: list[taken.Truth], progress: Progress) -> list[str]:
    """Run an attack that rebuilds images on a cell; return a sentence if it broke."""
    try:
        work.inversions.append(invert(work.cell, work.views, answers, attack, progress=progress))
    except Exception as error:
        work.inversions.append(Inversion(attack=attack.name, tier=attack.tier, reason=f"failed: {error}"))
        return [f"{attack.label} on {work.cell.name}: {type(error).__name__}: {error}"]
    return []


def _one_attack(work: Work, attack: AbstractAttack, answers: list[taken.Truth], tried: int) -> Taken:
    judged = taken.judge(attack, work.views, answers)
    hold_against_claim(work, attack, judged)
    covered = work.promised is not None and work.promised.claim.covered
    found = taken.measure(
        attack,
        judged,
        limit=work.limit_of(attack) if covered and attack.assumed.tier not in BEYOND else None,
        mu=work.mu,
        delta=work.cell.delta,
        rounds=work.cell.rounds,
        not_gaussian=work.not_gaussian,
    )
    found = replace(found, knows=(*found.knows, *_unsent(work, attack)))
    return found if attack.family is None else replace(found, compared=compared(judged, tried=tried))


def _unsent(work: Work, attack: AbstractAttack) -> tuple[str, ...]:
    """Return, in words, what stands between embedding and head that a server does not have; nothing above its tier."""
    if attack.reads == "prototypes" or attack.assumed.tier in BEYOND:
        return ()
    return tuple(dict.fromkeys(said for view in work.views if (said := unsent(view.server))))


def hold_against_claim(work: Work, attack: AbstractAttack, judged: taken.Judged) -> None:
    """Test the scores of an attack against the ceiling of the claim, where there is one for it."""
    covered = work.promised is not None and work.promised.claim.covered
    is_canary = attack.about_canaries
    limit = work.limit_of(attack)
    if limit is not None and (covered or is_canary) and attack.assumed.tier not in BEYOND:
        for test in taken.against_ceiling(attack, judged, limit):
            work.p_values[f"{attack.label}/{test.statistic}"] = test.p_value
    if attack.reaches_claim and work.canaries is None:
        work.p_values |= _by_client(work, attack, judged)
        work.canaries = judged
        work.shortest = min(
            float(np.linalg.norm(asked.vectors, axis=1).min())
            for view in work.views
            if (asked := view.questions[attack.asks_about]) is not None
        )


def _by_client(work: Work, attack: AbstractAttack, judged: taken.Judged) -> dict[str, float | None]:
    """Return the tests of each client's canaries against the ceiling of that client's own events."""
    found: dict[str, float | None] = {}
    for client in np.unique(judged.clients).tolist():
        limit = ceiling(work.cell, worst_event(work.transcripts, delta=work.cell.delta, client=client))
        if limit is None:
            continue
        for test in taken.against_ceiling(attack, judged.of(client), limit):
            found[f"{attack.label}/{test.statistic} of client {client}"] = test.p_value
    return found


def _nothing(attack: AbstractAttack, reason: str) -> Taken:
    threat = attack.assumed
    return Taken(
        attack=attack.label,
        tier=threat.tier,
        who=threat.who,
        knows=threat.knows,
        family=attack.family,
        reason=reason,
    )
