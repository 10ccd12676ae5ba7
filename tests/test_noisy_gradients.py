"""The noise on gradients, tested on what was sent alone: what is missing is seen, and nothing where all is well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.gradient.projres import Projres
from attacks.statistics.residuals import scale_p_value
from privkit.audit.noisy_gradients import gradient_noise
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.audit.white_box import Seen
from privkit.finetune.defenses._dpsgd import DpsgdGuard
from privkit.finetune.loop import train
from privkit.store import Run
from reports.findings import Findings, Verdict
from tests.finetuned import config

DPSGD = {"name": "dpsgd", "noise_multiplier": 2.0}


def run(tmp_path, name: str = "run", **settings: object) -> Run:
    made = config(rounds=2, questions={"clients": 1}, **{"defense": DPSGD, "sampling": "poisson", **settings})
    return train(made, tmp_path / name, device="cpu")


def audited(trained: Run) -> Findings:
    return audit(trained.path, attacks=[Projres()])


def with_noise(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Let clients add a share of the noise that their events claim."""
    honest = DpsgdGuard.__init__

    def cheat(self: DpsgdGuard, *args: object, noise_multiplier: float, **others: object) -> None:
        honest(self, *args, noise_multiplier=share * noise_multiplier, **others)  # pyright: ignore

    monkeypatch.setattr(DpsgdGuard, "__init__", cheat)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_missing_noise_is_a_violation(tmp_path, monkeypatch, share):
    with_noise(monkeypatch, share)
    found = audited(run(tmp_path))
    assert found.verdict is Verdict.VIOLATION
    assert "alone is claimed to be" in found.cells[0].reasons[0]


def test_noise_as_claimed_is_none_and_the_verdict_says_what_no_canary_tests(tmp_path):
    found = audited(run(tmp_path))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "no canary can be planted in a run that tunes a transformer" in found.cells[0].reasons[0]
    assert "other_canaries" not in found.cells[0].reasons[0]
    assert found.cells[0].noise is not None
    assert found.cells[0].noise.ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        {"defense": {"name": "none"}, "sampling": "fixed"},
        {"upload": "delta"},
        {"secure_aggregation": True},
    ],
    ids=["no noise", "no gradient", "a sum of many"],
)
def test_nothing_is_said_of_other_uploads(tmp_path, settings):
    trained = run(tmp_path, **settings)
    seen = Seen(RunView.of(trained), trained.truth(), [])
    assert gradient_noise([seen]) == {}


def test_every_client_and_round_is_looked_at(tmp_path):
    trained = run(tmp_path, keep="all")
    found = gradient_noise([Seen(RunView.of(trained), trained.truth(), [])])
    clients = len(trained.info.clients)
    assert set(found) == {
        "noise",
        *(f"noise of client {k}" for k in range(clients)),
        *(f"noise of round {t}" for t in range(2)),
    }


@given(st.floats(0.0, 30.0), st.integers(0, 2**31))
def test_whatever_the_gradients_are_a_small_p_value_is_as_rare_as_it_says(length, seed):
    rng = np.random.default_rng(seed)
    sums = np.full(50, length / 50**0.5)
    p = [scale_p_value(sums + rng.standard_normal(50)) for _ in range(200)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 5 * (0.05 * 0.95 / 200) ** 0.5
