"""The terms of a recorded run, as a caller gives them: what was promised, and what each client may spend."""

from numbers import Real

from accountant import check
from accountant.budget import Budget
from privkit.errors import InputError


def promise(value: object) -> dict[str, float] | None:
    """Return an (epsilon, delta) that was promised, by name; epsilon must be positive, delta between 0 and 1."""
    if value is None:
        return None
    epsilon, delta = _pair("promise", value)
    check.positive(epsilon=epsilon)
    check.open_unit(delta=delta)
    return {"epsilon": epsilon, "delta": delta}


def limit(budget: object) -> Budget | None:
    """Return the budget that is kept; a pair allows noise and rounds to be chosen from earlier outputs."""
    if budget is None or isinstance(budget, Budget):
        return budget
    epsilon, delta = _pair("budget", budget)
    return Budget(epsilon=epsilon, delta=delta, adaptive=True)


def _pair(name: str, value: object) -> tuple[float, float]:
    """Return an (epsilon, delta); anything but two numbers is refused by name."""
    numbers = list(value) if isinstance(value, tuple | list) else []
    if len(numbers) != 2 or not all(isinstance(n, Real) and not isinstance(n, bool) for n in numbers):
        raise InputError(f"{name}={value!r}; give a pair (epsilon, delta), for example (2.0, 1e-5).")
    return float(numbers[0]), float(numbers[1])
