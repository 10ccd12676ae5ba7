"""The budget: never overspent, the same in any order, and no more generous than what is known to be valid."""

import math
from typing import Any

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accountant.accountants import smallest
from accountant.budget import NOTHING, Budget, BudgetExceededError
from accountant.contract import Contract, DependsOn, Relation
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    LaplaceTopK,
    NonPrivate,
    PureDP,
    Repeated,
    SubsampledGaussian,
    UnsupportedEventError,
)
from accountant.gaussian import sigma_from_epsilon
from tests import exact

ADAPTIVE = Contract(hyperparameters=DependsOn.PAST_OUTPUTS)

epsilons = st.floats(-2, 2).map(lambda power: 10.0**power)
deltas = st.floats(-12, -1).map(lambda power: 10.0**power)
sigmas = st.floats(-1, 3).map(lambda power: 10.0**power)
budgets = st.builds(Budget, epsilon=epsilons, delta=deltas, adaptive=st.booleans())
gaussians = st.builds(Gaussian, noise_multiplier=sigmas)
parts = st.one_of(
    gaussians,
    st.builds(GroupGaussian, noise_multipliers=st.lists(sigmas, min_size=1, max_size=2).map(tuple)),
    st.builds(PureDP, epsilon=st.floats(1e-3, 3)),
    st.builds(BoundedRange, eta=st.floats(1e-3, 3)),
)


def true_mu(event: Event) -> Any:
    """Return mu of Gaussian releases from their definition, in fifty digits."""
    with mp.workdps(exact.DIGITS):
        if isinstance(event, Repeated):
            return mp.sqrt(event.count) * true_mu(event.event)
        if isinstance(event, Composed):
            return mp.sqrt(sum(true_mu(part) ** 2 for part in event.events))
        assert isinstance(event, Gaussian)
        return 1 / mp.mpf(event.noise_multiplier)


def greedy(budget: Budget, offered: list[Event]) -> tuple[Event, ...]:
    """Return what is released when every offer that fits is taken."""
    taken: tuple[Event, ...] = ()
    for following in offered:
        if budget.affords(Composed(events=taken), following):
            taken = (*taken, following)
    return taken


# ---------------------------------------------------------------------- never overspent


@given(budgets, st.lists(gaussians, min_size=1, max_size=6))
def test_gaussian_releases_that_fit_keep_the_budget_in_fifty_digits(
    budget: Budget, offered: list[Event]
) -> None:
    taken = greedy(budget, offered)
    assume(taken)
    spent = true_mu(Composed(events=taken))
    with mp.workdps(exact.DIGITS):
        assert exact.log_delta(budget.epsilon, spent) <= mp.log(mp.mpf(budget.delta))


@settings(max_examples=40)
@given(budgets, st.lists(parts, min_size=1, max_size=5))
def test_releases_that_fit_never_cost_more_than_the_budget(budget: Budget, offered: list[Event]) -> None:
    taken = Composed(events=greedy(budget, offered))
    found = smallest(taken, delta=budget.delta).epsilon
    assert found <= budget.epsilon * (1 + 1e-12) + 1e-13 * budget.mu  # as a root may be rounded up
    assert budget.spent(taken) <= budget.epsilon * (1 + 1e-12) + 1e-13 * budget.mu
    assert budget.remaining(taken) == pytest.approx(max(budget.epsilon - budget.spent(taken), 0.0))


@settings(max_examples=40)
@given(budgets, parts, parts)
def test_how_many_are_left_is_how_many_fit_one_by_one(budget: Budget, spent: Event, following: Event) -> None:
    left = budget.releases_left(spent, following)
    assume(left < 2**40)
    some = lambda n: Composed(events=(spent, Repeated(event=following, count=n))) if n else spent  # noqa: E731
    assert not budget.affords(some(left), following)
    for n in {0, left // 2, left - 1} if left else ():
        assert budget.affords(some(n), following)
    assert budget.releases_left(spent, following, most=3) == min(left, 3)


@given(epsilons, deltas, st.lists(gaussians, min_size=1, max_size=3), gaussians)
def test_a_filter_and_a_fixed_plan_of_gaussian_noise_agree(
    epsilon: float, delta: float, spent: list[Event], following: Event
) -> None:
    plan, free = (Budget(epsilon=epsilon, delta=delta, adaptive=adaptive) for adaptive in (False, True))
    before = Composed(events=tuple(spent))
    if free.affords(before, following):
        assert plan.affords(before, following)
    assert free.spent(before) == pytest.approx(plan.spent(before), rel=1e-9)


@settings(max_examples=40)
@given(epsilons, deltas, st.lists(parts, max_size=3), parts)
def test_a_filter_is_never_more_generous_than_a_fixed_plan(
    epsilon: float, delta: float, spent: list[Event], following: Event
) -> None:
    plan, free = (Budget(epsilon=epsilon, delta=delta, adaptive=adaptive) for adaptive in (False, True))
    before = Composed(events=tuple(spent))
    assert plan.affords(before, following) or not free.affords(before, following)
    assert free.spent(before) >= plan.spent(before) * (1 - 1e-9)


@settings(max_examples=40)
@given(budgets, st.lists(parts, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_order_does_not_matter(budget: Budget, spent: list[Event], random: Any) -> None:
    mixed = list(spent)
    random.shuffle(mixed)
    one, other = Composed(events=tuple(spent)), Composed(events=tuple(mixed))
    assert budget.spent(one) == pytest.approx(budget.spent(other), rel=1e-12)
    left = budget.releases_left(one, spent[0])
    assert left == pytest.approx(budget.releases_left(other, spent[0]), rel=1e-9)


# ---------------------------------------------------------------------- plans fit their own budget


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("rounds", [1, 7, 20, 50, 1000, 999_983])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-5), (1.0, 1e-5), (8.0, 1e-9), (50.0, 1e-3)])
def test_noise_for_t_rounds_fits_exactly_t_times(
    epsilon: float, delta: float, rounds: int, adaptive: bool
) -> None:
    sigma = sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)
    budget = Budget(epsilon=epsilon, delta=delta, adaptive=adaptive)
    assert budget.releases_left(NOTHING, Gaussian(noise_multiplier=sigma)) == rounds


def test_a_half_of_the_squares_buys_a_half_of_the_rounds() -> None:
    sigma = sigma_from_epsilon(epsilon=2.0, delta=1e-5, rounds=20)
    budget, release = Budget(epsilon=2.0, delta=1e-5, adaptive=True), Gaussian(noise_multiplier=sigma)
    spent = Gaussian(noise_multiplier=sigma / math.sqrt(10.0) * (1 + 1e-9))
    assert budget.releases_left(spent, release) == 10
    assert budget.releases_left(Gaussian(noise_multiplier=sigma / 10), release) == 0


def test_a_fixed_plan_of_selections_and_noise_has_more_rounds_than_a_filter_allows() -> None:
    release = Composed(
        events=(
            PureDP(epsilon=0.1 / 20),
            Gaussian(noise_multiplier=sigma_from_epsilon(epsilon=0.9, delta=1e-5, rounds=20)),
        )
    )
    assert Budget(epsilon=1.0, delta=1e-5).releases_left(NOTHING, release) >= 20
    assert Budget(epsilon=1.0, delta=1e-5, adaptive=True).releases_left(NOTHING, release) < 25


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_release_without_noise_never_fits(adaptive: bool) -> None:
    budget = Budget(epsilon=1e9, delta=0.5, adaptive=adaptive)
    assert not budget.affords(NOTHING, NonPrivate())
    assert budget.releases_left(NOTHING, NonPrivate()) == 0
    assert math.isinf(budget.spent(NonPrivate()))
    assert budget.remaining(NonPrivate()) == 0
    with pytest.raises(BudgetExceededError, match="one more release would make it inf"):
        budget.require("client 0", spent=NOTHING, following=NonPrivate())


def test_what_was_chosen_from_outputs_needs_a_filter() -> None:
    release = Gaussian(noise_multiplier=100.0, contract=ADAPTIVE)
    plan, free = Budget(epsilon=1.0, delta=1e-5), Budget(epsilon=1.0, delta=1e-5, adaptive=True)
    for before, following in ((NOTHING, release), (release, Gaussian(noise_multiplier=100.0))):
        assert free.affords(before, following)
        with pytest.raises(ValueError, match=r"chosen from earlier outputs .*; set adaptive to true"):
            plan.affords(before, following)


def test_a_filter_answers_that_assumption_and_promises_the_budget() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5, adaptive=True)
    release = Gaussian(noise_multiplier=100.0, contract=ADAPTIVE)
    spent = Composed(events=(Repeated(event=release, count=3), release))
    found = budget.claim(spent, delta=1e-5)
    assert found.epsilon == pytest.approx(1.0, rel=1e-11)
    assert budget.spent(spent) < 0.2
    assert (found.method, found.bound, found.releases) == ("Gaussian filter", "upper bound", 4)
    assert "A6" not in [b.id for b in found.broken]
    assert "A1" in [b.id for b in found.broken]
    elsewhere = budget.claim(spent, delta=1e-7)
    assert exact.log_delta(elsewhere.epsilon, budget.mu) == pytest.approx(math.log(1e-7), abs=1e-9)


def test_a_filter_does_not_excuse_a_choice_from_private_data() -> None:
    private = Contract(hyperparameters=DependsOn.PRIVATE_STATE)
    release = Gaussian(noise_multiplier=100.0, contract=private)
    found = Budget(epsilon=1.0, delta=1e-5, adaptive=True).claim(release, delta=1e-5)
    assert "A6" in [b.id for b in found.broken]


def test_a_fixed_budget_claims_what_was_spent() -> None:
    release = Gaussian(noise_multiplier=100.0)
    for adaptive in (False, True):  # nothing was chosen from outputs
        budget = Budget(epsilon=1.0, delta=1e-5, adaptive=adaptive)
        assert budget.claim(release, delta=1e-5).epsilon == budget.spent(release) < 1


def test_a_filter_that_was_not_kept_answers_nothing() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5, adaptive=True)
    found = budget.claim(Gaussian(noise_multiplier=1.0, contract=ADAPTIVE), delta=1e-5)
    assert found.epsilon > 4
    assert "A6" in [b.id for b in found.broken]


def test_no_filter_holds_an_approximate_part() -> None:
    release = ApproximateDP(epsilon=0.1, delta=1e-9)
    assert Budget(epsilon=1.0, delta=1e-5).affords(NOTHING, release)
    with pytest.raises(ValueError, match=r"approximate .* no place in an adaptive budget"):
        Budget(epsilon=1.0, delta=1e-5, adaptive=True).affords(NOTHING, release)


def test_delta_that_approximate_parts_use_up_is_an_exceeded_budget() -> None:
    budget = Budget(epsilon=100.0, delta=1e-5)
    assert budget.releases_left(NOTHING, ApproximateDP(epsilon=0.1, delta=3e-6)) == 3


@pytest.mark.parametrize(
    ("contract", "text"),
    [(Contract(relation=Relation.ADD_REMOVE), "relations"), (Contract(unit="one person"), "units")],
)
def test_costs_for_different_neighbours_are_not_added(contract: Contract, text: str) -> None:
    with pytest.raises(ValueError, match=f"mix the {text} .*; keep one budget for each"):
        Budget(epsilon=1.0, delta=1e-5).affords(
            Gaussian(noise_multiplier=9.0), Gaussian(noise_multiplier=9.0, contract=contract)
        )


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_an_epsilon_that_is_no_budget_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        Budget(epsilon=value, delta=1e-5)


@pytest.mark.parametrize("value", [math.nan, 0.0, 1.0, -0.1])
def test_a_delta_that_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        Budget(epsilon=1.0, delta=value)


def test_a_release_that_costs_nothing_has_no_last_time() -> None:
    with pytest.raises(ValueError, match="costs nothing, so it fits any number of times"):
        Budget(epsilon=1.0, delta=1e-5).releases_left(NOTHING, NOTHING)


def test_an_unknown_event_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="is no event"):
        Budget(epsilon=1.0, delta=1e-5).spent(Event())


def test_a_refusal_says_who_spent_what_and_the_way_out() -> None:
    budget, release = Budget(epsilon=1.0, delta=1e-5), Gaussian(noise_multiplier=5.0)
    with pytest.raises(BudgetExceededError) as caught:
        budget.require("client 3", spent=release, following=release)
    before, after = (smallest(Repeated(event=release, count=n), delta=1e-5).epsilon for n in (1, 2))
    assert str(caught.value) == (
        f"client 3 has spent epsilon {before:.6g} of 1 at delta 1e-05, and one more release would make it {after:.6g}; "
        "stop here, release with more noise, or raise the budget."
    )


def test_every_kind_of_event_has_a_place_in_both_budgets() -> None:
    release = Composed(
        events=(
            LaplaceTopK(k=2, dim=9, score_bound=1.0, scale=500.0),
            SubsampledGaussian(noise_multiplier=90.0, sampling_rate=0.5),
        )
    )
    for adaptive in (False, True):
        assert Budget(epsilon=1.0, delta=1e-5, adaptive=adaptive).affords(NOTHING, release)


def test_plain_values_are_read_back() -> None:
    budget = Budget(epsilon=1.0, delta=1e-5, adaptive=True)
    assert Budget.from_dict(budget.to_dict()) == budget


@pytest.mark.parametrize(
    "plain", [{}, {"epsilon": 1.0, "delta": 1e-5}, {"epsilon": 1.0, "delta": 1e-5, "zeta": 1}]
)
def test_plain_values_with_other_keys_are_no_budget(plain: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"a budget of .*; give epsilon, delta, adaptive"):
        Budget.from_dict(plain)
