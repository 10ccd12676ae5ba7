import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.cost import total
from accountant.events import (
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    Leaf,
    PureDP,
    Repeated,
    UnsupportedEventError,
    from_dict,
    leaves,
    to_dict,
)
from accountant.renyi import epsilon_from_event
from tests import draw

some = st.integers(1, 9)


@settings(max_examples=50)
@given(draw.leaves(), some)
def test_repeating_equals_looping(leaf: Event, count: int) -> None:
    repeated, looped = Repeated(event=leaf, count=count), Composed(events=(leaf,) * count)
    assert total(repeated).mu == pytest.approx(total(looped).mu, rel=1e-14)
    assert total(repeated).pure == total(looped).pure
    assert total(repeated).unbounded == total(looped).unbounded
    want = epsilon_from_event(looped, delta=1e-6)
    assert epsilon_from_event(repeated, delta=1e-6) == pytest.approx(want, rel=1e-12)


@settings(max_examples=50)
@given(draw.events(), some, some)
def test_counts_multiply_through_every_level(event: Event, outer: int, inner: int) -> None:
    nested = Repeated(event=Repeated(event=event, count=inner), count=outer)
    flat = [(leaf, runs * outer * inner) for leaf, runs in leaves(event)]
    assert list(leaves(nested)) == flat


@settings(max_examples=50)
@given(draw.events(), draw.events())
def test_costs_add_up(first: Event, second: Event) -> None:
    both, one, other = total(Composed(events=(first, second))), total(first), total(second)
    assert both.mu == pytest.approx(math.hypot(one.mu, other.mu), rel=1e-13)
    assert sum(n for _, n in both.pure) == sum(n for _, n in one.pure + other.pure)
    assert (both.unbounded is None) == (one.unbounded is None and other.unbounded is None)


@given(draw.events())
def test_an_event_survives_json(event: Event) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(event), allow_nan=False))) == event


def test_a_class_that_is_not_ours_is_not_written_down() -> None:
    class Gaussian(Leaf):
        """An event of the same name, with another meaning."""

    with pytest.raises(UnsupportedEventError, match="can be written down"):
        to_dict(Gaussian())
    with pytest.raises(UnsupportedEventError):
        to_dict(Composed(events=(Gaussian(),)))


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"event": "Laplace", "epsilon": 1.0}, "'Laplace' is unknown; known are Gaussian"),
        ({"noise_multiplier": 1.0}, "None is unknown"),
        ({"event": "Gaussian"}, "does not fit Gaussian"),
        ({"event": "Gaussian", "noise_multiplier": 1.0, "q": 0.1}, "does not fit Gaussian"),
    ],
)
def test_a_record_that_is_no_event_is_refused(plain: dict, words: str) -> None:
    with pytest.raises(UnsupportedEventError, match=words):
        from_dict(plain)


def test_an_unknown_contract_field_is_refused() -> None:
    plain = to_dict(PureDP(epsilon=0.5))
    plain["contract"]["colour"] = "red"
    with pytest.raises(ValueError, match="unknown field 'colour'"):
        from_dict(plain)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_noise_and_epsilon_must_be_positive(bad: float) -> None:
    with pytest.raises(ValueError, match="noise_multiplier"):
        Gaussian(noise_multiplier=bad)
    with pytest.raises(ValueError, match="noise_multiplier"):
        GroupGaussian(noise_multipliers=(1.0, bad))
    with pytest.raises(ValueError, match="epsilon"):
        PureDP(epsilon=bad)


def test_groups_and_counts_must_be_there() -> None:
    with pytest.raises(ValueError, match="noise_multipliers is empty"):
        GroupGaussian(noise_multipliers=())
    with pytest.raises(ValueError, match="count=0"):
        Repeated(event=PureDP(epsilon=1.0), count=0)
