"""``privkit calibrate dpsgd --target-auc``: noise that leaves the matched filter at an AUC, by law or by measure."""

import json
import re

import numpy as np
import pytest
from click.testing import Result
from scipy.stats import norm
from typer.testing import CliRunner

from accountant import subsampled
from attacks.gradient._noise import Noise
from attacks.gradient._plan import predicted, sigma_for
from attacks.gradient._snr import predicted_auc
from privkit.cli.calibrate import app
from tests import gradient_lab as lab
from tests import gradient_scene as scene

LAW = ("--target-auc", "0.6", "--batch", "16", "--effective-dimension", "390")


def shell(*words: str) -> Result:
    return CliRunner().invoke(app, ["dpsgd", *words])


def document(*words: str) -> dict[str, float]:
    found = shell(*words, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_the_law_s_noise_leaves_that_auc_and_hardly_less_does_not():
    found = document(*LAW)
    assert found["predicted_auc"] == pytest.approx(0.6)
    told = {"effective_dimension": 390.0, "batch_size": 16}
    assert predicted_auc(**told, sigma=found["sigma"]) == pytest.approx(0.6)
    assert predicted_auc(**told, sigma=0.99 * found["sigma"]) > 0.6
    assert found["auc_ceiling"] == pytest.approx(norm.cdf(1 / (found["sigma"] * 2**0.5)))
    assert found["auc_ceiling"] > 0.6
    assert found["epsilon"] is None


def test_of_any_gradients_it_is_the_ceiling_of_the_proof():
    found = document("--target-auc", "0.76")
    assert found["sigma"] == pytest.approx(1 / (2**0.5 * norm.ppf(0.76)))
    assert found["predicted_auc"] == pytest.approx(found["auc_ceiling"]) == pytest.approx(0.76)
    assert found["effective_dimension"] is None


def test_steps_on_samples_have_an_epsilon():
    found = document(*LAW, "--sampling-rate", "0.02", "--steps", "50", "--delta", "1e-6")
    spent = subsampled.epsilon(noise_multiplier=found["sigma"], sampling_rate=0.02, steps=50, delta=1e-6)
    assert (found["epsilon"], found["method"]) == (spent.epsilon, spent.method)
    out = shell(*LAW, "--sampling-rate", "0.02", "--steps", "50", "--delta", "1e-6").stdout
    assert f"epsilon {spent.epsilon:.6g} at delta 1e-06 over 50 steps on samples of rate 0.02" in out
    sigma, auc, ceiling = re.findall(r"sigma ([\d.]+) .* AUC ([\d.]+) .*\nceiling ([\d.]+):", out)[0]
    assert float(sigma) >= found["sigma"]
    assert (float(auc), float(ceiling)) == pytest.approx((0.6, found["auc_ceiling"]), abs=1e-3)


def test_a_batch_may_be_enough():
    words = (
        "--target-auc",
        "0.9",
        "--batch",
        "4000",
        "--effective-dimension",
        "390",
        "--sampling-rate",
        "0.1",
    )
    found = document(*words)
    assert (found["sigma"], found["auc_ceiling"], found["epsilon"]) == (0.0, 1.0, None)
    assert found["predicted_auc"] < 0.9
    assert "without noise nothing is promised" in shell(*words).stdout


@pytest.mark.parametrize("auc", [0.55, 0.6, 0.75])
def test_what_is_measured_is_predicted_to_reach_it_and_is_reached(auc):
    bank = scene.bank(500)
    public = lab.taken(bank, np.arange(120))
    sigma, told = sigma_for(public, auc=auc, batch_size=8)
    assert auc - 1e-3 <= told.auc <= auc
    assert predicted(public, batch_size=8, noise=Noise(1.0, sigma)) == told
    assert predicted(public, batch_size=8, noise=Noise(1.0, 0.9 * sigma)).auc > auc


def test_a_batch_that_is_enough_needs_no_noise():
    public = lab.taken(scene.bank(60), np.arange(60))
    sigma, told = sigma_for(public, auc=0.9, batch_size=100_000)
    assert sigma == 0.0
    assert told.auc <= 0.9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "neither of --epsilon and --target-auc given as target; give one."),
        ((*LAW, "--epsilon", "1"), "both of --epsilon and --target-auc given as target; give one."),
        (
            ("--epsilon", "1"),
            "--epsilon is not known without --sampling-rate; give it, 1 for steps on all records.",
        ),
        (
            ("--epsilon", "1", "--sampling-rate", "0.1", "--batch", "4"),
            "--batch says nothing about an epsilon; give it with --target-auc.",
        ),
        (
            ("--target-auc", "0.6", "--effective-dimension", "390"),
            "--effective-dimension says what others hide, and not how many; give --batch too.",
        ),
        (("--target-auc", "0.5"), "auc=0.5 must lie above 0.5 and below 1."),
        (("--target-auc", "nan"), "auc=nan must lie above 0.5 and below 1."),
        ((*LAW, "--batch", "0"), "batch_size=0 must be a whole number of at least 1."),
        ((*LAW, "--effective-dimension", "0"), "effective_dimension=0.0 must be finite and above 0."),
        ((*LAW, "--sampling-rate", "2"), "sampling_rate=2.0 must lie between 0 and 1."),
        (
            ("--target-auc", "0.6", "--run", "nowhere"),
            "nowhere does not exist; give a run of the gradient lab.",
        ),
        ((*LAW, "--run", "."), "--effective-dimension and --run both say what gradients are like; give one."),
    ],
)
def test_bad_input_is_one_sentence(words, sentence):
    found = shell(*words)
    assert isinstance(found.exception, ValueError)
    assert str(found.exception) == sentence
