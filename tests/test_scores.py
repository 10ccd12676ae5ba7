"""Scores and estimates: what is accepted, what is refused, and what survives being written down."""

import json

import numpy as np
import pytest
import torch

from attacks.statistics.confusion import Confusion, confusion
from attacks.statistics.estimate import Estimate
from attacks.statistics.scores import as_scores, split


@pytest.mark.parametrize(
    "given",
    [
        [0.5, 0.25],
        [[0.5], [0.25]],
        np.array([0.5, 0.25], dtype=np.float32),
        np.array([[0.5], [0.25]]),
        torch.tensor([0.5, 0.25]),
        torch.tensor([[0.5], [0.25]], dtype=torch.float64),
        np.array([0.5, 0.25], dtype=object),
    ],
)
def test_scores_of_any_holder_become_one_float64_vector(given):
    scores = as_scores(given, name="scores")
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("bad", [float("nan"), None, "NaN", float("inf"), -float("inf")])
def test_a_score_that_is_no_number_is_refused_with_its_index(bad):
    with pytest.raises(ValueError, match=r"members\[2\] is"):
        as_scores([0.1, 0.2, bad, bad], name="members")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (np.zeros((2, 2)), "shape"),
        (np.zeros((1, 3)), "shape"),
        (np.float64(0.3), "shape"),
        ([[0.1], [0.2, 0.3]], "cannot be read"),
        (["high", "low"], "cannot be read"),
        (torch.zeros(2, requires_grad=True), "cannot be read"),
        (np.ma.masked_array([0.1, 0.2], mask=[True, False]), "masked"),
    ],
)
def test_what_is_not_one_column_of_numbers_is_refused(given, what):
    with pytest.raises(ValueError, match=what):
        as_scores(given, name="scores")


def test_split_keeps_the_order_within_each_class():
    members, non_members = split([3, 1, 2, 0], np.array([[1], [0], [1], [0]]))
    assert members.tolist() == [3.0, 2.0]
    assert non_members.tolist() == [1.0, 0.0]


def test_split_into_one_class_leaves_the_other_empty():
    members, non_members = split([0.1, 0.2], [True, True])
    assert len(members) == 2
    assert len(non_members) == 0


@pytest.mark.parametrize(
    ("member", "what"),
    [
        ([1, 0, 2], r"member\[2\]"),
        ([True, False], "2 entries for 3 scores"),
        (["yes", "no", "no"], r"member\[0\]"),
        ([1.0, 0.0, float("nan")], r"member\[2\]"),
    ],
)
def test_a_membership_that_is_not_a_truth_value_is_refused(member, what):
    with pytest.raises(ValueError, match=what):
        split([0.1, 0.2, 0.3], member)


def test_an_estimate_survives_strict_json():
    estimate = Estimate(
        value=0.5, low=0.25, high=0.75, level=0.95, kind="x", n_members=3, n_non_members=4, null=0.5
    )
    written = json.dumps(estimate.to_dict(), allow_nan=False)
    assert Estimate.from_dict(json.loads(written)) == estimate
    missing = Estimate.missing("no members", n_members=0, n_non_members=4)
    assert Estimate.from_dict(json.loads(json.dumps(missing.to_dict(), allow_nan=False))) == missing


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_an_estimate_holds_no_number_that_json_cannot(number):
    with pytest.raises(ValueError, match="must be finite"):
        Estimate(value=number, n_members=1, n_non_members=1)


def test_a_missing_value_needs_its_reason_and_no_interval():
    with pytest.raises(ValueError, match="without a reason"):
        Estimate(value=None, n_members=1, n_non_members=1)
    with pytest.raises(ValueError, match="interval"):
        Estimate(value=None, low=0.1, note="no members", n_members=0, n_non_members=1)


def test_an_estimate_with_an_unknown_field_is_refused():
    plain = Estimate(value=0.5, n_members=1, n_non_members=1).to_dict()
    with pytest.raises(ValueError, match="bias"):
        Estimate.from_dict({**plain, "bias": 0.1})


def test_a_confusion_counts_scores_at_the_threshold_as_flagged():
    point = confusion([2, 1, 0], [1, 0], threshold=1.0, threshold_source="the claim")
    assert (point.true_positives, point.false_positives, point.threshold) == (2, 1, 1.0)
    nobody = confusion([2, 1, 0], [1, 0], threshold=float("inf"), threshold_source="the claim")
    assert (nobody.true_positives, nobody.false_positives, nobody.threshold) == (0, 0, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"true_positives": 5},
        {"false_positives": -1},
        {"n_members": 0},
        {"threshold": float("nan")},
        {"threshold_source": ""},
    ],
)
def test_counts_that_cannot_be_are_refused(wrong):
    counts = {
        "true_positives": 1,
        "n_members": 4,
        "false_positives": 0,
        "n_non_members": 4,
        "threshold_source": "x",
    }
    Confusion(**counts)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Confusion(**{**counts, **wrong})
