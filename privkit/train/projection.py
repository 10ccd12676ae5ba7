"""What a plan would spend, round by round, before anything is trained or written."""

import math
from collections.abc import Iterator

from accountant.budget import BudgetExceededError
from accountant.events import Event
from privkit.allowance import Allowance
from privkit.config import OnExhausted, Spending
from privkit.errors import InputError
from privkit.noise import NoNoise
from privkit.stop import Stop
from privkit.study import Plan
from privkit.train.attendance import Attendance
from privkit.train.encoded import Encoded
from privkit.train.study import first_messages, known, later_messages


def refuse_unaffordable(plan: Plan, data: Encoded) -> None:
    """Raise if a plan's budget does not hold what it must: all rounds, or the first one if it may stop later.

    Raises:
        BudgetExceededError: names the client, the round and the way out.
        InputError: the budget has no meaning for the plan's releases.
    """
    wanted = plan.config.budget
    if wanted is None or not plan.config.method.uploads:
        return
    try:
        found = first_stop(plan, data, wanted)
    except ValueError as error:
        raise InputError(f"cell {plan.cell}: {error}") from None
    if found is not None and (found.round == 0 or wanted.on_exhausted is OnExhausted.REFUSE):
        raise BudgetExceededError(
            f"cell {plan.cell}: {data.names[found.client]} would exceed its budget in round {found.round + 1} of "
            f"{plan.config.rounds}: epsilon {found.spent:.6g} before it, {found.exceeds:.6g} after it, and the budget "
            f"is {found.budget}; {_way_out(found)}."
        )


def first_stop(plan: Plan, data: Encoded, wanted: Spending) -> Stop | None:
    """Return the first release of a plan that its budget does not hold, or ``None`` if all fit."""
    allowance = Allowance(wanted.budget)
    for round, events in enumerate(_rounds(plan, data)):
        for client, event in events.items():
            found = allowance.exceeded(round=round, client=client, event=event)
            if found is not None:
                return found
        for client, event in events.items():
            allowance.add(client, event)
    return None


def _rounds(plan: Plan, data: Encoded) -> Iterator[dict[int, Event]]:
    """Yield the events of every round, one of each client that sends in it, as if no noise were drawn."""
    mechanism = plan.config.defense.mechanism(rounds=plan.config.rounds)
    free, messages = known(plan, data), first_messages(plan, data)
    attendance = Attendance.of(plan, clients=len(data.names))
    for round in range(plan.config.rounds):
        senders = attendance.senders(round).tolist()
        if round == 1:
            messages = later_messages(plan, data)
        yield {m: mechanism.cost(messages[m], free[m]) for m in senders}
        for m in senders:
            free[m] = mechanism.send(messages[m], NoNoise(), free[m]).known


def _way_out(found: Stop) -> str:
    if math.isinf(found.exceeds):
        return "take a defense that promises something, or leave out the budget"
    if found.round == 0:
        return "release with more noise, or raise the budget"
    return (
        f"train {found.round} rounds, release with more noise, raise the budget, or set on_exhausted to stop"
    )
