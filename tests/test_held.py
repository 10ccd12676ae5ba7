"""Records held more than once: m mu within a release, sqrt(m) mu over releases, the worst over disjoint clients."""

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.accountants import smallest
from accountant.cost import total
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    ClipSet,
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    NonPrivate,
    PureDP,
    Repeated,
    SubsampledGaussian,
    UnsupportedEventError,
)
from accountant.held import copies, held, worst
from tests import exact

SIGMA = 26.37954927087409  # epsilon 1 at delta 1e-5 over 50 rounds


def mus(event: Event) -> float:
    return total(event).mu


@pytest.mark.parametrize("m", [1, 2, 3, 10])
def test_e12_the_same_release_m_times_costs_m_mu_and_m_fresh_silos_root_m_mu(m: int) -> None:
    one = Repeated(event=Gaussian(noise_multiplier=SIGMA), count=50)
    silos = worst(dict.fromkeys(range(m), one), delta=1e-5, shared=[range(m)] if m > 1 else [])
    assert mus(copies(one, m)) == pytest.approx(m * math.sqrt(50) / SIGMA, rel=1e-12)
    assert mus(silos.event) == pytest.approx(math.sqrt(m * 50) / SIGMA, rel=1e-12)


def test_e12_in_epsilon() -> None:
    one = Repeated(event=Gaussian(noise_multiplier=SIGMA), count=50)
    twice = smallest(copies(one, 2), delta=1e-5).epsilon
    both = smallest(worst({0: one, 1: one}, delta=1e-5, shared=[(0, 1)]).event, delta=1e-5).epsilon
    assert both == pytest.approx(1.46517, abs=5e-6)  # the accounting analysis has it for a label change, E2
    for epsilon, factor in ((twice, 2), (both, math.sqrt(2))):
        assert exact.log_delta(epsilon, factor * math.sqrt(50) / SIGMA) == pytest.approx(
            math.log(1e-5), abs=1e-9
        )


def test_copies_move_the_mean_of_a_release_m_times_as_far() -> None:
    # n records in a ball of radius 1, m of them the same: replaced by its negative, the mean moves 2m/n
    n, m, sigma = 10, 3, 4.0
    before = [1.0] * m + [0.0] * (n - m)
    after = [-1.0] * m + [0.0] * (n - m)
    moved = abs(sum(before) - sum(after)) / n
    assert mus(copies(Gaussian(noise_multiplier=sigma), m)) == pytest.approx(moved / (sigma * 2 / n))


@pytest.mark.parametrize("clip", list(ClipSet))
def test_groups_move_together(clip: ClipSet) -> None:
    release = GroupGaussian(noise_multipliers=(2.0, 3.0), clip=clip)
    assert mus(copies(release, 4)) == pytest.approx(4 * mus(release))


@given(st.floats(0.01, 3), st.floats(1e-12, 1e-6), st.integers(2, 6))
def test_an_approximate_guarantee_weakens_as_a_chain_of_neighbours(
    epsilon: float, delta: float, m: int
) -> None:
    with mp.workdps(40):
        end = mp.mpf(0)
        for _ in range(m):  # P(S) <= e^eps P'(S) + delta, m times
            end = mp.exp(mp.mpf(epsilon)) * end + mp.mpf(delta)
    if end >= 1:
        with pytest.raises(ValueError, match=f"says nothing of a record held {m} times"):
            copies(ApproximateDP(epsilon=epsilon, delta=delta), m)
        return
    found = copies(ApproximateDP(epsilon=epsilon, delta=delta), m)
    assert isinstance(found, ApproximateDP)
    assert (found.epsilon, found.delta) == (pytest.approx(m * epsilon), pytest.approx(float(end), rel=1e-11))


def test_pure_guarantees_and_ranges_grow_m_times() -> None:
    assert copies(PureDP(epsilon=0.5), 3) == PureDP(epsilon=1.5)
    assert copies(BoundedRange(eta=0.5), 3) == BoundedRange(eta=1.5)


def test_a_selection_paid_for_the_whole_range_already() -> None:
    for kind in (LaplaceTopK, GumbelTopK):
        release = kind(k=2, dim=9, score_bound=1.0, scale=50.0)
        assert copies(release, 7) == release
    assert copies(NonPrivate(), 7) == NonPrivate()


def test_sampling_is_forgotten_where_each_copy_is_drawn_on_its_own() -> None:
    release = SubsampledGaussian(noise_multiplier=6.0, sampling_rate=0.01)
    assert copies(release, 2) == Gaussian(noise_multiplier=3.0)


def test_nested_events_are_walked() -> None:
    inner = Composed(events=(Repeated(event=Gaussian(noise_multiplier=6.0), count=4), PureDP(epsilon=1.0)))
    wanted = Composed(events=(Repeated(event=Gaussian(noise_multiplier=2.0), count=4), PureDP(epsilon=3.0)))
    assert copies(inner, 3) == wanted
    assert copies(inner, 1) is inner


def test_an_event_nothing_is_known_of_is_refused() -> None:
    class Odd(Leaf):
        pass

    with pytest.raises(UnsupportedEventError, match="Odd has no known cost for a record held 2 times"):
        copies(Odd(), 2)
    with pytest.raises(UnsupportedEventError, match="is no event"):
        copies(Event(), 2)


@pytest.mark.parametrize("m", [0, -1])
def test_a_number_of_copies_is_a_count(m: int) -> None:
    with pytest.raises(ValueError, match=f"m={m} must be a whole number of at least 1"):
        copies(PureDP(epsilon=1.0), m)


# ---------------------------------------------------------------------- clients

LOUD, QUIET = Gaussian(noise_multiplier=1.0), Gaussian(noise_multiplier=9.0)


def test_disjoint_clients_pay_as_much_as_the_costliest() -> None:
    found = worst({0: QUIET, 1: LOUD, 2: QUIET}, delta=1e-5)
    assert (found.clients, mus(found.event)) == ((1,), 1.0)


def test_clients_that_share_records_add_up_and_the_others_stay_apart() -> None:
    events = {0: QUIET, 1: LOUD, 2: QUIET, 3: QUIET}
    groups = held(events, shared=[(0, 2)])
    assert [group.clients for group in groups] == [(0, 2), (1,), (3,)]
    assert mus(groups[0].event) == pytest.approx(math.sqrt(2) / 9)
    assert worst(events, delta=1e-5, shared=[(0, 2)]).clients == (1,)
    assert worst(events, delta=1e-5, shared=[(1, 2)]).clients == (1, 2)


def test_groups_that_overlap_are_one() -> None:
    events = dict.fromkeys(range(6), QUIET)
    groups = held(events, shared=[(0, 1), (3, 4), (1, 2), (2, 3)])
    assert [group.clients for group in groups] == [(0, 1, 2, 3, 4), (5,)]


def test_what_is_said_of_clients_must_make_sense() -> None:
    with pytest.raises(ValueError, match=r"shared names client 7; known are \[0, 1\]"):
        held({0: LOUD, 1: LOUD}, shared=[(0, 7)])
    with pytest.raises(ValueError, match=r"shared=\[1\]; name at least two"):
        held({0: LOUD, 1: LOUD}, shared=[(1,)])
    with pytest.raises(ValueError, match="events is empty"):
        worst({}, delta=1e-5)
