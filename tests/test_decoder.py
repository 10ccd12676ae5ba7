"""The learned decoder: what it draws, what it must not depend on, and what it refuses."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attacks._base import NotApplicableError
from attacks.hijack import decoder as module
from attacks.hijack._attempts import Attempts
from attacks.hijack._decoder_net import DecoderNet
from attacks.hijack._goals import Goal
from attacks.hijack.decoder import LearnedDecoder
from attacks.hijack.inversion import FeatureInversion
from privkit import plug
from privkit.audit import inverted
from privkit.audit._inverted_encoders import Encoders
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Prototypes, Release
from privkit.study import Study
from privkit.train.loop import train
from reports.findings import Inversion
from tests.test_inversion import Opened, refused, same

BASE = {
    "data": {"name": "digits", "per_class": 40},
    "encoder": {"name": "usps_cnn"},
    "rounds": 3,
    "method": {"name": "fedproto", "predict": "prototype"},
    "defense": {"name": "none"},
}
TRAINING = {"epochs": 8, "learning_rate": 0.01}
CHANGES = {
    "plain": {},
    "adapter": {"model": {"adapter": 16}, "method": BASE["method"] | {"training": TRAINING}},
}
QUICK = LearnedDecoder(targets=6, steps=40)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("decoder")
    cells = {n: RunConfig.from_settings(BASE | CHANGES[n], where=n) for n in CHANGES}
    train(Study(cells=cells, seeds=1, partial=True), root, device="cpu")
    return root


@pytest.fixture
def plain(trained: Path, tmp_path: Path) -> Opened:
    module._TRAINED._found.clear()
    return Opened(Path(shutil.copytree(trained / "plain", tmp_path / "plain")))


@pytest.fixture
def adapter(trained: Path, tmp_path: Path) -> Opened:
    module._TRAINED._found.clear()
    return Opened(Path(shutil.copytree(trained / "adapter", tmp_path / "adapter")))


def number(value: float | None) -> float:
    """The value of a measure that must be there."""
    assert value is not None
    return value


# ---------------------------------------------------------------------- what it draws


def test_what_it_draws_is_nearer_to_members_than_what_optimisation_does(plain: Opened) -> None:
    drawn = plain.invert(LearnedDecoder(targets=12, steps=300))
    optimised = plain.invert(FeatureInversion(targets=12, restarts=1, steps=60))
    assert drawn.reason == optimised.reason == ""
    assert number(drawn.psnr) > number(optimised.psnr) + 3
    assert number(drawn.ssim) > number(optimised.ssim) + 0.1
    assert number(drawn.psnr) > number(drawn.psnr_random) + 2
    assert number(drawn.cosine) > number(drawn.cosine_random) + 0.3
    assert drawn.top1 is not None
    assert number(drawn.top1.low) > 0.1


def test_noise_alone_leaves_it_at_its_floor(plain: Opened) -> None:
    """It draws digits all the same: only the random directions beside it show that they are nobody's."""
    rng = np.random.default_rng(0)

    def noise(release: Release) -> Release:
        assert isinstance(release.payload, Prototypes)
        vectors = rng.standard_normal(release.payload.vectors.shape)
        return replace(release, payload=replace(release.payload, vectors=vectors))

    found = plain.releasing(noise).invert(LearnedDecoder(targets=40, steps=100))
    assert found.psnr == pytest.approx(found.psnr_random, abs=0.8)
    assert found.cosine == pytest.approx(found.cosine_random, abs=0.1)
    assert found.rank == pytest.approx(found.rank_chance, abs=0.8)


def test_every_tier_runs_end_to_end_and_the_clients_own_encoder_is_worth_most(adapter: Opened) -> None:
    found = {
        tier: adapter.invert(LearnedDecoder(tier=tier, targets=6, steps=100, round=2))
        for tier in ("public", "shadow", "client")
    }
    assert {one.reason for one in found.values()} == {""}
    cosine = {tier: number(one.cosine) for tier, one in found.items()}
    assert cosine["client"] == max(cosine.values())
    assert len(set(cosine.values())) == 3
    assert all("images of the same domains that no client holds" in one.knows for one in found.values())


def test_clients_with_the_same_encoder_share_a_decoder(plain: Opened, monkeypatch) -> None:
    trainings, trained = [], LearnedDecoder._trained
    monkeypatch.setattr(
        LearnedDecoder, "_trained", lambda self, *rest: trainings.append(1) or trained(self, *rest)
    )
    plain.invert(QUICK)
    assert len(trainings) == 1


# ---------------------------------------------------------------------- what it must not depend on


def test_without_the_truth_the_same_is_drawn_and_again(plain: Opened) -> None:
    before = plain.rebuild(QUICK)
    for run in plain.cell.runs:
        shutil.rmtree(run.path / "truth")
        shutil.rmtree(run.path / "audit", ignore_errors=True)
    module._TRAINED._found.clear()
    assert same(plain.rebuild(QUICK), before)


def test_the_state_of_torch_changes_nothing(plain: Opened) -> None:
    before = plain.rebuild(QUICK)
    shutil.rmtree(plain.views[0].run.path / "audit")
    module._TRAINED._found.clear()
    torch.manual_seed(99)
    assert same(plain.rebuild(QUICK), before)


def test_a_second_audit_computes_nothing(plain: Opened, monkeypatch) -> None:
    first = plain.invert(QUICK)

    def never(*_: object) -> Attempts:
        raise AssertionError("computed again")

    monkeypatch.setattr(LearnedDecoder, "_drawn", never)
    assert plain.invert(QUICK) == first
    with pytest.raises(AssertionError, match="computed again"):
        plain.invert(QUICK.model_copy(update={"steps": 41}))


def test_a_killed_audit_goes_on_after_the_last_client(adapter: Opened, monkeypatch) -> None:
    attack = QUICK.model_copy(update={"tier": "client"})
    whole = adapter.rebuild(attack)
    shutil.rmtree(adapter.views[0].run.path / "audit")
    module._TRAINED._found.clear()
    drawn, one = [], LearnedDecoder._drawn

    def killed_in_the_second(self: LearnedDecoder, *rest) -> Attempts:
        if len(drawn) == 1:
            raise KeyboardInterrupt
        drawn.append(1)
        return one(self, *rest)

    monkeypatch.setattr(LearnedDecoder, "_drawn", killed_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        adapter.rebuild(attack)
    monkeypatch.setattr(LearnedDecoder, "_drawn", lambda self, *rest: drawn.append(1) or one(self, *rest))
    assert same(adapter.rebuild(attack), whole)
    assert len(drawn) == 4


def test_progress_starts_at_nothing_and_ends_at_all(adapter: Opened) -> None:
    seen: list[tuple[int, int]] = []
    adapter.invert(QUICK.model_copy(update={"tier": "client"}), progress=lambda _, *now: seen.append(now))
    assert (seen[0], seen[-1]) == ((0, 160), (160, 160))
    assert seen == sorted(seen)


# ---------------------------------------------------------------------- what it refuses


def test_it_needs_images_of_its_own(plain: Opened) -> None:
    plain.views = [replace(view, reference=None) for view in plain.views]
    reason = "the attacker owns no images to train a decoder on; set split.reference above 0"
    assert refused(plain.invert(QUICK)) == reason


@pytest.mark.parametrize("attack", [QUICK, FeatureInversion()], ids=lambda attack: attack.name)
def test_sentences_have_no_pictures(plain: Opened, monkeypatch, attack) -> None:
    config = plain.config.model_copy(update={"encoder": plug.build("privkit.models", "minilm")})
    monkeypatch.setattr(inverted, "_config", lambda *_: config)
    found: Inversion = plain.invert(attack)
    assert "gives no gradients from image to embedding" in refused(found)


def test_prototypes_of_another_width_are_refused(plain: Opened) -> None:
    def cut(release: Release) -> Release:
        assert isinstance(release.payload, Prototypes)
        return replace(release, payload=replace(release.payload, vectors=release.payload.vectors[:, :64]))

    reason = refused(plain.releasing(cut).invert(QUICK))
    assert reason.startswith("prototypes have 64 numbers and embeddings 128")


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_prototypes_that_are_no_numbers_cannot_be_released(wrong) -> None:
    with pytest.raises(InputError, match="only finite numbers can be released"):
        Prototypes(vectors=np.array([[1.0, wrong]]), labels=np.array([0]))


def test_an_encoder_that_gives_no_numbers_is_refused() -> None:
    goals = [Goal(client=0, label=0, vector=np.ones(16))]
    owned = np.zeros((4, 1, 4, 4), np.float32)
    with pytest.raises(NotApplicableError, match="not finite"):
        list(
            QUICK.rebuild(
                goals, lambda x, _: x.flatten(1) * float("nan"), image_shape=(1, 4, 4), seed=0, owned=owned
            )
        )


def test_an_encoder_in_training_mode_is_refused() -> None:
    backbone = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(16))
    model = Network(PersonalModel())
    with pytest.raises(InputError, match=r"in training mode.* call eval\(\)"):
        Encoders(backbone, model, {})
    Encoders(backbone.eval(), model, {})


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"batch_size": 0}, {"feature": -1}, {"restarts": 2}])
def test_settings_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LearnedDecoder(**wrong)


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 13, 20), (1, 8, 8), (3, 65, 40), (1, 1, 1)])
def test_pictures_have_the_shape_that_is_asked_for(shape) -> None:
    images = DecoderNet(5, shape, channels=4)(torch.randn(3, 5))
    assert images.shape == (3, *shape)
    assert ((images >= 0) & (images <= 1)).all()


def test_only_the_direction_of_an_embedding_is_read() -> None:
    net, z = DecoderNet(5, (1, 8, 8), channels=4), torch.randn(3, 5)
    assert torch.allclose(net(z), net(7.5 * z), atol=1e-5)
