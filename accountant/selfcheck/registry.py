"""From what a case asks and gives to the law that answers it.

A law is a function of keyword-only parameters, registered for the kinds that it answers. A case fits it if it gives
every parameter without a default and no parameter that the law does not have: an unknown word is never ignored. A law
whose first parameter is a :class:`~accountant.selfcheck.privacy.Privacy` answers for every mechanism; the
parameters that are left over must then fit a mechanism, a function registered in the same way.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant.selfcheck.numbers import NotANumberError, number, whole
from accountant.selfcheck.privacy import NotUnderstoodError, Privacy

_F = TypeVar("_F", bound=Callable[..., Any])
_CONVERT: dict[Any, Callable[[Any], Any]] = {float: number, int: whole, str: str}
_ALIASES = {
    "eps": "epsilon",
    "alpha": "fpr",
    "order": "alphas",
    "orders": "alphas",
    "rounds": "T",
    "steps": "T",
    "compositions": "T",
    "count": "T",
    "noise_multiplier": "sigma",
    "q": "sampling_rate",
    "sample_rate": "sampling_rate",
    "lam": "scale",
    "lambda": "scale",
    "eps0_per_round": "eps0",
    "epsilon0": "eps0",
    "pure_eps0": "eps0",
    "dim": "d",
    "adjacency": "relation",
    "neighbouring_relation": "relation",
    "neighboring_relation": "relation",
    "claimed_epsilon": "claimed_eps",
    "delta_claimed": "claimed_delta",
    "n_classes": "classes",
    "dT": "d_times_T",
    "c1_constant": "c1",
}
"""Other words for the same parameter."""

_MECHANISMS = (
    (r"bounded.range|exponential.mech|gumbel", "bounded range"),
    (r"laplace", "laplace"),
    (r"pure|randomi[sz]ed.response", "pure"),
    (r"approx", "approximate"),
    (r"zcdp|concentrated", "zcdp"),
    (r"gaussian|gdp", "gaussian"),
)
"""What a mechanism's name has in it, and what it is called here; the first that fits."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A registered function.

    Attributes:
        compute: the function.
        mechanisms: names of the mechanism under which it applies; "" stands for a case that names none.
        convert: how each parameter is read.
        required: parameters without a default.
        of_privacy: whether its first parameter is a mechanism's privacy.
    """

    compute: Callable[..., Any]
    mechanisms: tuple[str, ...]
    convert: Mapping[str, Callable[[Any], Any]]
    required: frozenset[str]
    of_privacy: bool

    def fits(self, mechanism: str, given: Mapping[str, Any]) -> bool:
        """Return whether the parameters are this function's, all of them and no others."""
        return mechanism in self.mechanisms and self.required <= given.keys() <= self.convert.keys()

    def __call__(self, *before: Privacy, **given: Any) -> Any:
        """Return the function of the parameters, each read as its type."""
        try:
            read = {name: self.convert[name](value) for name, value in given.items()}
        except NotANumberError as error:
            raise NotUnderstoodError(str(error)) from None
        return self.compute(*before, **read)


_LAWS: dict[str, list[Rule]] = {}
_BUILDERS: list[Rule] = []


def law(*kinds: str, mechanisms: tuple[str, ...] = ("", "gaussian")) -> Callable[[_F], _F]:
    """Register a function as the answer to some kinds of question."""

    def register(function: _F) -> _F:
        rule = _rule(function, mechanisms)
        for kind in kinds:
            _LAWS.setdefault(kind, []).append(rule)
        return function

    return register


def mechanism(*names: str) -> Callable[[_F], _F]:
    """Register a function as the meaning of a mechanism's parameters; "" for cases that name no mechanism."""

    def register(function: _F) -> _F:
        _BUILDERS.append(_rule(function, names))
        return function

    return register


def kinds() -> tuple[str, ...]:
    """Return the kinds that some law answers."""
    return tuple(_LAWS)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a case asks, in terms of a law.

    Attributes:
        rule: the law that answers it.
        privacy: the mechanism that is asked of, for laws that answer for every mechanism.
        asked: the other parameters, as the case gives them.
    """

    rule: Rule
    privacy: Privacy | None
    asked: Mapping[str, Any]

    def answer(self) -> Any:
        """Return what the law makes of it."""
        return self.rule(**self.asked) if self.privacy is None else self.rule(self.privacy, **self.asked)


def canonical(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters under the names that laws have for them."""
    return {_ALIASES.get(name, name): value for name, value in params.items()}


def question(kind: str, params: Mapping[str, Any]) -> Question:
    """Return what a case asks.

    Raises:
        NotUnderstoodError: no law answers the kind, or none fits the parameters.
        ValueError: a mechanism refuses its numbers.
    """
    if kind not in _LAWS:
        raise NotUnderstoodError(f"kind {kind!r} is not known")
    given = canonical(params)
    named = _mechanism_named(given.pop("mechanism", ""))
    for rule in _LAWS[kind]:
        if not rule.of_privacy and rule.fits(named, given):
            return Question(rule=rule, privacy=None, asked=given)
    for rule in _LAWS[kind]:
        if rule.of_privacy and rule.required <= given.keys():
            asked = {name: value for name, value in given.items() if name in rule.convert}
            rest = {name: value for name, value in given.items() if name not in rule.convert}
            for builder in _BUILDERS:
                if builder.fits(named, rest):
                    return Question(rule=rule, privacy=builder(**rest), asked=asked)
    of = f" of {named}" if named else ""
    raise NotUnderstoodError(f"no law for {kind}{of} from {', '.join(sorted(given)) or 'nothing'}")


def _mechanism_named(words: Any) -> str:
    for pattern, name in _MECHANISMS:
        if re.search(pattern, str(words), re.IGNORECASE):
            return name
    if words:
        raise NotUnderstoodError(f"mechanism {str(words)!r} is not known")
    return ""


def _rule(function: Callable[..., Any], mechanisms: tuple[str, ...]) -> Rule:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    keywords = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    return Rule(
        compute=function,
        mechanisms=mechanisms,
        convert={parameter.name: _CONVERT.get(parameter.annotation, _as_is) for parameter in keywords},
        required=frozenset(parameter.name for parameter in keywords if parameter.default is parameter.empty),
        of_privacy=len(keywords) < len(parameters),
    )


def _as_is(value: Any) -> Any:
    return value
