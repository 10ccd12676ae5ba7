import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import rdp
from accountant.cost import total
from accountant.events import ClipSet, GroupGaussian
from accountant.gaussian import epsilon_from_mu, mu_from_epsilon
from accountant.groupwise import Allocation, size

allocations = st.tuples(st.integers(1, 4000), st.integers(1, 4000)).map(lambda pair: Allocation(sizes=pair))
levels = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)

# VPDR with d = 512 by an independent calculation: rho, d_A, w_A, noise / reference on A, on B, its energy, and the
# same three against IGPP at the same total epsilon
TABLE = [
    (0.1, 52, 0.7484, 0.368, 1.890, 3.222, 0.408, 2.095, 3.960),
    (0.2, 103, 0.6659, 0.550, 1.546, 1.971, 0.609, 1.714, 2.422),
    (0.3, 154, 0.6039, 0.706, 1.329, 1.384, 0.782, 1.473, 1.701),
    (0.4, 205, 0.5503, 0.853, 1.155, 1.091, 0.946, 1.280, 1.341),
    (0.5, 256, 0.5, 1.0, 1.0, 1.0, 1.109, 1.109, 1.229),
]


@pytest.mark.parametrize(("rho", "k", "weight", "on_a", "on_b", "energy"), [row[:6] for row in TABLE])
def test_the_allocation_agrees_with_the_published_table(
    rho: float, k: int, weight: float, on_a: float, on_b: float, energy: float
) -> None:
    found = Allocation.of(dim=512, rho=rho)
    assert found.sizes == (k, 512 - k)
    assert found.weights[0] == pytest.approx(weight, abs=1e-4)
    assert found.noise_ratios == pytest.approx((on_a, on_b), abs=1e-3)
    assert found.energy_ratio == pytest.approx(energy, abs=1e-3)


@pytest.mark.parametrize(("rho", "on_a", "on_b", "energy"), [(row[0], *row[6:]) for row in TABLE])
def test_against_isotropic_noise_at_the_full_budget_the_split_costs_a_tenth_more(
    rho: float, on_a: float, on_b: float, energy: float
) -> None:
    # The published columns compare two noise multipliers of the authors' own Renyi accountant, T = 20, r = 0.1.
    budget = {"delta": 1e-5, "rounds": 20, "orders": rdp.VPDR_ORDERS}
    loss = rdp.sigma_classic(epsilon=0.9, **budget) / rdp.sigma_classic(epsilon=1.0, **budget)
    found = Allocation.of(dim=512, rho=rho)
    assert [loss * ratio for ratio in found.noise_ratios] == pytest.approx([on_a, on_b], abs=1e-3)
    assert loss**2 * found.energy_ratio == pytest.approx(energy, abs=1e-3)


@given(allocations, levels)
def test_any_partition_costs_what_the_reference_costs(found: Allocation, sigma_ref: float) -> None:
    sigma_a, sigma_b = found.multipliers(sigma_ref)
    assert 1 / sigma_a**2 + 1 / sigma_b**2 == pytest.approx(1 / sigma_ref**2, rel=1e-12)
    mu = total(GroupGaussian(noise_multipliers=(sigma_a, sigma_b))).mu
    assert mu == pytest.approx(1 / sigma_ref, rel=1e-12)


@given(allocations, levels)
def test_the_groups_share_clip_norm_and_weight(found: Allocation, clip_norm: float) -> None:
    assert math.hypot(*found.clip_norms(clip_norm)) == pytest.approx(clip_norm, rel=1e-12)
    assert math.hypot(*found.kappas) == pytest.approx(1.0, rel=1e-12)
    assert math.fsum(found.weights) == pytest.approx(1.0, rel=1e-12)


@given(allocations)
def test_energy_is_what_the_two_groups_add_up_to_and_never_below_one(found: Allocation) -> None:
    (a, b), (on_a, on_b) = found.sizes, found.noise_ratios
    assert found.energy_ratio == pytest.approx((a * on_a**2 + b * on_b**2) / found.dim, rel=1e-12)
    assert found.energy_ratio >= 1 - 1e-15
    assert (found.energy_ratio > 1 + 1e-12) == (a != b)


@given(allocations)
def test_swapping_the_groups_swaps_every_pair(found: Allocation) -> None:
    swapped = Allocation(sizes=(found.sizes[1], found.sizes[0]))
    assert swapped.kappas == found.kappas[::-1]
    assert swapped.weights == pytest.approx(found.weights[::-1], rel=1e-15)
    assert swapped.noise_ratios == pytest.approx(found.noise_ratios[::-1], rel=1e-14)


@given(allocations)
def test_the_smaller_group_gets_less_noise_than_isotropic(found: Allocation) -> None:
    (a, b), (on_a, on_b) = found.sizes, found.noise_ratios
    assert (on_a < 1 - 1e-12) == (a < b)
    assert (on_b < 1 - 1e-12) == (b < a)


def test_noise_of_the_stated_size_is_what_a_record_can_move() -> None:
    # One record that moves both groups by their whole sensitivity: its shift in units of the noise is 1 / sigma_ref.
    found, sensitivity, sigma_ref = Allocation.of(dim=20, rho=0.3), 0.5, 7.0
    moves = [kappa * sensitivity for kappa in found.kappas]
    stds = [sigma * move for sigma, move in zip(found.multipliers(sigma_ref), moves, strict=True)]
    assert stds == pytest.approx([ratio * sigma_ref * sensitivity for ratio in found.noise_ratios])
    assert np.hypot(moves[0] / stds[0], moves[1] / stds[1]) == pytest.approx(1 / sigma_ref)


@pytest.mark.parametrize(("sizes", "epsilon"), [((1, 9), 3.0710164504538967), ((1, 1), 1.0)])
def test_clipping_the_whole_vector_instead_of_each_group_breaks_the_claim(
    sizes: tuple[int, int], epsilon: float
) -> None:
    # A record with all its norm in A moves A by sqrt(w_A) / kappa_A too much (mpmath, 40 digits).
    found = Allocation(sizes=sizes)
    factor = max(math.sqrt(w) / kappa for w, kappa in zip(found.weights, found.kappas, strict=True))
    mu = factor * mu_from_epsilon(epsilon=1.0, delta=1e-5)
    assert epsilon_from_mu(mu=mu, delta=1e-5) == pytest.approx(epsilon, abs=1e-8)


@pytest.mark.parametrize(
    ("dim", "rho", "k"),
    [(515, 0.2, 103), (510, 0.1, 51), (30, 0.1, 3), (513, 0.5, 257), (2, 0.5, 1), (10**6, 1e-6, 1)],
)
def test_the_size_is_that_of_the_decimal_as_written(dim: int, rho: float, k: int) -> None:
    assert size(dim=dim, rho=rho) == k


@given(st.integers(1, 500), st.integers(2, 3000))
def test_a_share_in_thousandths_is_rounded_up_exactly(thousandths: int, dim: int) -> None:
    if thousandths * dim >= 1000:
        assert size(dim=dim, rho=thousandths / 1000) == -(-thousandths * dim // 1000)


@pytest.mark.parametrize(
    ("dim", "rho", "sentence"),
    [
        (512, 0.51, r"rho=0\.51 must lie in \(0, 0\.5\]"),
        (512, 0.0, r"rho=0\.0 must lie in \(0, 0\.5\]"),
        (512, -0.1, r"rho=-0\.1 must lie in"),
        (512, math.nan, "rho is NaN"),
        (512, math.inf, "rho=inf must be finite"),
        (128, 0.00781, r"raise rho to at least 0\.00782"),
        (5, 0.1, r"rho=0\.1 of dim=5 is less than one coordinate; raise rho to at least 0\.2"),
        (1, 0.5, "dim=1 leaves no coordinate for one of the two groups; use at least 2"),
        (0, 0.5, "dim=0 must be a whole number of at least 1"),
    ],
)
def test_a_share_that_leaves_a_group_empty_is_refused(dim: int, rho: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Allocation.of(dim=dim, rho=rho)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_bad_levels_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="sigma_ref"):
        Allocation(sizes=(1, 1)).multipliers(bad)
    with pytest.raises(ValueError, match="clip_norm"):
        Allocation(sizes=(1, 1)).clip_norms(bad)


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(ValueError, match="size_of_group_B=0 must be a whole number of at least 1"):
        Allocation(sizes=(3, 0))


@given(allocations, levels, levels)
def test_the_ellipsoid_has_the_noise_and_the_cost_of_the_balls_inside_it(
    allocation: Allocation, sigma: float, radius: float
) -> None:
    balls, ellipsoid = (
        allocation.release(sigma_ref=sigma, clip_norm=radius, clip=clip)
        for clip in (ClipSet.GROUPWISE, ClipSet.ELLIPSOID)
    )
    stds = [
        [s * r for s, r in zip(e.noise_multipliers, e.clip_norms, strict=True)] for e in (balls, ellipsoid)
    ]
    assert stds[0] == pytest.approx(stds[1], rel=1e-12)
    assert total(balls).mu == pytest.approx(1 / sigma, rel=1e-12)
    assert total(ellipsoid).mu == pytest.approx(1 / sigma, rel=1e-12)
    inscribed = sum((r / a) ** 2 for r, a in zip(balls.clip_norms, ellipsoid.clip_norms, strict=True))
    assert inscribed == pytest.approx(1.0, rel=1e-12)
    assert all(r < a for r, a in zip(balls.clip_norms, ellipsoid.clip_norms, strict=True))


@pytest.mark.parametrize(("k", "a", "b"), [(1, 0.365, 1.897), (5, 1.0, 1.0)])
def test_semi_axes_are_those_of_the_specification(k: int, a: float, b: float) -> None:
    assert Allocation(sizes=(k, 10 - k)).semi_axes(1.0) == pytest.approx((a, b), abs=5e-4)


def test_one_ball_is_refused_and_would_cost_what_the_specification_says() -> None:
    """E8: the noise of VPP under a global clip, k / d = 0.1: mu is 2.7386 times what is claimed."""
    allocation = Allocation(sizes=(1, 9))
    with pytest.raises(
        ValueError, match="whole length into the group with the smaller noise; clip to one ball per"
    ):
        allocation.release(sigma_ref=26.0, clip_norm=1.0, clip=ClipSet.GLOBAL)
    against_the_ball = tuple(26.0 * ratio for ratio in allocation.noise_ratios)
    event = GroupGaussian(noise_multipliers=against_the_ball, clip_norms=(1.0, 1.0), clip=ClipSet.GLOBAL)
    assert total(event).mu * 26.0 == pytest.approx(2.7386, abs=5e-5)
