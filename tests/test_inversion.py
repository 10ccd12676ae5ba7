"""Feature inversion: what it rebuilds, what it is judged by, and what it refuses."""

import base64
import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from pydantic import ValidationError

from accountant.events import NonPrivate
from attacks._base import NotApplicableError
from attacks.hijack import _losses
from attacks.hijack._attempts import Attempts
from attacks.hijack._base import AbstractHijack
from attacks.hijack._goals import spread
from attacks.hijack._optimise import StopRule, descend
from attacks.hijack.inversion import FeatureInversion
from privkit import plug, store, tensors
from privkit.audit import inverted
from privkit.audit._inverted_pictures import png
from privkit.audit.cells import Cell, cells
from privkit.audit.scored import RunView
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.models.onnx import Onnx
from privkit.models.usps_cnn import UspsCnn
from privkit.release import Head, Prototypes, Release, SumsAndCounts
from privkit.study import Study
from privkit.transcript import ServerView, Transcript
from reports.findings import Inversion

FEDPROTO = {"name": "fedproto", "predict": "prototype"}
BASE = {
    "data": {"name": "digits", "per_class": 40},
    "encoder": {"name": "usps_cnn"},
    "rounds": 3,
    "method": FEDPROTO,
    "defense": {"name": "none"},
}
SMALL = {"name": "digits", "per_class": 10}
MPFT = {"name": "mpft", "prototypes": "mean", "server": {"epochs": 2}, "training": {"learning_rate": 0.01}}
CHANGES = {
    "plain": {},
    "adapter": {
        "model": {"adapter": 16},
        "method": {**FEDPROTO, "training": {"epochs": 8, "learning_rate": 0.01}},
    },
    "local": {"method": {"name": "local_only"}},
    "weights": {"method": {"name": "fedavg_head"}},
    "mixed": {"mixed": [{"encoder": "usps_cnn"}, {"encoder": "usps_cnn", "model": {"adapter": 4}}]},
    "inside": {"model": {"adapter": 2, "inside": True}, "rounds": 1, "data": SMALL},
    "mpft": {"model": {"adapter": 16}, "method": MPFT},
    "mpft_adapted": {"model": {"adapter": 16}, "method": {**MPFT, "embeddings": "adapted"}},
    "mpft_inside": {"model": {"adapter": 2, "inside": True}, "method": MPFT, "rounds": 1, "data": SMALL},
}
QUICK = FeatureInversion(targets=4, restarts=2, steps=6, learning_rate=0.1, batch_size=8)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four domains, three rounds: a frozen encoder, adapters, and nothing released."""
    from privkit.train.loop import train

    root = tmp_path_factory.mktemp("inversion")
    configs = {n: RunConfig.from_settings({**BASE, **change}, where=n) for n, change in CHANGES.items()}
    train(Study(cells=configs, seeds=2), root)
    return root


class Opened:
    """A cell with its views, and its answers if it still has them."""

    def __init__(self, folder: Path) -> None:
        self.cell: Cell = cells(store.find(folder))[0]
        self.views = [RunView.of(run) for run in self.cell.runs]

    @property
    def config(self) -> RunConfig:
        return RunConfig.from_settings(dict(self.cell.first.info.config), where="test")

    def invert(self, attack: AbstractHijack, **options) -> Inversion:
        answers = [run.truth() for run in self.cell.runs]
        return inverted.invert(self.cell, self.views, answers, attack, **options)

    def rebuild(self, attack: AbstractHijack) -> Attempts:
        return inverted.rebuild(self.views[0], attack, self.config)[1]

    def releasing(self, make) -> "Opened":
        """The same cell with other messages: ``make(release)`` is sent instead."""
        self.views = [
            replace(view, transcript=Transcript.of(make(r) for r in view.transcript.releases))
            for view in self.views
        ]
        return self


@pytest.fixture
def plain(trained: Path, tmp_path: Path) -> Opened:
    return Opened(Path(shutil.copytree(trained / "plain", tmp_path / "plain")))


@pytest.fixture
def adapter(trained: Path, tmp_path: Path) -> Opened:
    return Opened(Path(shutil.copytree(trained / "adapter", tmp_path / "adapter")))


def same(one: Attempts, other: Attempts) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


# ---------------------------------------------------------------------- what it finds


def test_without_noise_it_is_far_above_every_floor(plain: Opened) -> None:
    found = plain.invert(FeatureInversion(targets=12, restarts=1, steps=20, learning_rate=0.1, batch_size=24))
    assert found.reason == ""
    assert found.cosine is not None
    assert found.cosine_random is not None
    assert found.cosine_between is not None
    assert found.cosine > max(found.cosine_random, found.cosine_between) + 0.2
    assert found.cosine_released == pytest.approx(found.cosine, abs=1e-4)
    assert found.centred is not None
    assert found.centred > 0.5
    assert found.cffd is not None
    assert found.cffd_random is not None
    assert found.cffd_least is not None
    assert found.cffd_least < found.cffd < found.cffd_random
    assert found.top1 is not None
    assert found.top1.null == pytest.approx(0.1)
    assert found.top1.low is not None
    assert found.top1.low > 0.1
    assert found.top1_undone == 1.0


def test_a_release_of_nothing_but_noise_leaves_every_measure_at_its_floor(plain: Opened) -> None:
    rng = np.random.default_rng(1)

    def noise(release: Release) -> Release:
        sent = release.payload
        assert isinstance(sent, Prototypes)
        vectors = rng.standard_normal(sent.vectors.shape)
        return replace(release, payload=replace(sent, vectors=vectors))

    attack = FeatureInversion(targets=40, restarts=1, steps=20, learning_rate=0.1, batch_size=80)
    found = plain.releasing(noise).invert(attack)
    assert found.cosine == pytest.approx(found.cosine_random, abs=0.06)
    assert found.cffd == pytest.approx(found.cffd_random, abs=0.12)
    assert found.centred == pytest.approx(0, abs=0.15)
    assert found.top1 is not None
    assert found.top1.p_value is not None
    assert found.top1.p_value > 0.01
    assert found.top1_undone is not None
    assert found.top1_undone < 0.3


def test_the_more_it_knows_of_the_encoder_the_more_it_gets(adapter: Opened) -> None:
    attack = FeatureInversion(targets=8, restarts=1, steps=20, learning_rate=0.1, round=2)
    public, shadow, client = (
        adapter.invert(attack.model_copy(update={"tier": tier})) for tier in ("public", "shadow", "client")
    )
    assert public.cosine is not None
    assert shadow.cosine is not None
    assert client.cosine is not None
    assert client.cosine > public.cosine
    assert len({public.cosine, shadow.cosine, client.cosine}) == 3
    # each attacker converges in its own space; only the client's encoder is the one that released
    assert client.cosine_released is not None
    assert public.cosine_released is not None
    assert client.cosine_released > public.cosine_released
    assert {found.target for found in (public, shadow, client)} == {"prototypes of round 2"}


def test_under_a_frozen_encoder_the_tiers_are_one(plain: Opened) -> None:
    for tier in ("shadow", "client"):
        found = plain.invert(QUICK.model_copy(update={"tier": tier}))
        assert "the encoder is frozen" in found.reason
        assert found.rebuilt == ()
        assert found.knows


def test_every_target_is_shown_beside_real_images_of_its_class(plain: Opened) -> None:
    found = plain.invert(QUICK.model_copy(update={"seeds": 2}))
    assert (found.seeds, len(found.rebuilt)) == (2, 8)
    assert "4 targets per run and as many random directions, 2 restarts, at most 6 steps" in found.budget
    assert {one.client for one in found.rebuilt} == {0, 1, 2, 3}
    view, config = plain.views[0], plain.config
    members = view.questions["records"]
    assert members is not None
    members = members.where(plain.cell.first.truth().members)
    for one in found.rebuilt[:4]:
        for picture in (one.picture, one.nearest, one.mean):
            assert Image.open(io.BytesIO(base64.b64decode(picture))).size == (16, 16)
        shown = np.array(Image.open(io.BytesIO(base64.b64decode(one.nearest))))
        z = config.encoder.encode(shown[None])
        mine = members.of(one.client)
        mine = mine.where(mine.labels == one.label)
        assert np.abs(mine.vectors - z).max(1).min() < 1e-5


# ---------------------------------------------------------------------- what it must not depend on


def test_without_the_truth_the_same_is_rebuilt(plain: Opened) -> None:
    before = plain.rebuild(QUICK)
    for run in plain.cell.runs:
        shutil.rmtree(run.path / "truth")
        shutil.rmtree(run.path / "audit", ignore_errors=True)
    assert same(plain.rebuild(QUICK), before)


def test_the_same_seed_gives_the_same_images_and_another_seed_others(plain: Opened) -> None:
    before = plain.rebuild(QUICK)
    shutil.rmtree(plain.views[0].run.path / "audit")
    assert same(plain.rebuild(QUICK), before)
    other = inverted.rebuild(plain.views[1], QUICK, plain.config)[1]
    assert not np.array_equal(other.images, before.images)


def test_an_image_does_not_depend_on_its_batch(plain: Opened) -> None:
    together = plain.rebuild(QUICK.model_copy(update={"batch_size": 16}))
    apart = plain.rebuild(QUICK.model_copy(update={"batch_size": 3}))
    assert apart.images == pytest.approx(together.images, abs=1e-3)
    assert apart.cosines == pytest.approx(together.cosines, abs=1e-4)


def test_a_second_audit_computes_nothing_and_finds_the_same(plain: Opened, monkeypatch) -> None:
    first = plain.invert(QUICK)

    def never(*_: object) -> Attempts:
        raise AssertionError("computed again")

    monkeypatch.setattr(FeatureInversion, "_descend", never)
    assert plain.invert(QUICK) == first
    with pytest.raises(AssertionError, match="computed again"):
        plain.invert(QUICK.model_copy(update={"steps": 7}))


def test_a_killed_audit_goes_on_after_the_last_batch(plain: Opened, monkeypatch) -> None:
    whole = plain.rebuild(QUICK)
    shutil.rmtree(plain.views[0].run.path / "audit")
    computed, batch = [], FeatureInversion._descend

    def killed_in_the_second(self: FeatureInversion, *rest) -> Attempts:
        if len(computed) == 1:
            raise KeyboardInterrupt
        computed.append(1)
        return batch(self, *rest)

    monkeypatch.setattr(FeatureInversion, "_descend", killed_in_the_second)
    with pytest.raises(KeyboardInterrupt):
        plain.rebuild(QUICK)
    monkeypatch.setattr(
        FeatureInversion, "_descend", lambda self, *rest: computed.append(1) or batch(self, *rest)
    )
    assert same(plain.rebuild(QUICK), whole)
    assert len(computed) == 2


def test_a_damaged_file_of_attempts_is_made_again(plain: Opened) -> None:
    before = plain.rebuild(QUICK)
    path = plain.views[0].run.path / "audit" / "inversion-public.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    assert same(plain.rebuild(QUICK), before)
    named = dict(tensors.read(path))
    tensors.write(path, named | {"images": np.zeros_like(named["images"])})
    assert same(plain.rebuild(QUICK), before)


def test_progress_starts_at_nothing_and_ends_at_all(plain: Opened) -> None:
    seen: list[tuple[int, int]] = []
    plain.invert(QUICK, progress=lambda stage, done, total: seen.append((done, total)))
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


# ---------------------------------------------------------------------- what it refuses


def refused(found: Inversion) -> str:
    assert found.rebuilt == ()
    assert found.cosine is None
    return found.reason


def test_a_recorded_run_has_no_encoder(recorded: Path) -> None:
    opened = Opened(recorded)
    assert refused(opened.invert(QUICK)) == "recorded by other code: no encoder to invert"


def test_a_silent_run_has_nothing_to_invert(trained: Path) -> None:
    assert refused(Opened(trained / "local").invert(QUICK)) == "nothing was released"


TIERS = ("public", "shadow", "client")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("weights", "clients sent trained weights, not prototypes"),
        ("mixed", "inversion knows one encoder for all clients, and this run mixes architectures"),
        (
            "inside",
            "inversion knows adapters after the encoder, and this run has them inside every block of it",
        ),
    ],
)
def test_what_it_cannot_invert_is_said_for_every_tier(trained: Path, cell, reason, tier) -> None:
    assert refused(Opened(trained / cell).invert(QUICK.model_copy(update={"tier": tier}))) == reason


@pytest.mark.parametrize("cell", ["mpft", "mpft_inside"])
def test_releases_of_the_frozen_backbone_are_attacked_and_judged_under_it(trained, tmp_path, cell) -> None:
    """Whatever adapters clients train: what they send has not seen them, so the released mean is the clean one."""
    opened = Opened(Path(shutil.copytree(trained / cell, tmp_path / cell)))
    attack = FeatureInversion(targets=8, restarts=1, steps=20, learning_rate=0.1, batch_size=16)
    found = opened.invert(attack)
    assert found.reason == ""
    assert found.cosine is not None
    assert found.cosine_random is not None
    assert found.cosine > found.cosine_random + 0.2
    assert found.cosine_released == pytest.approx(found.cosine, abs=1e-4)
    assert found.top1_undone == 1.0
    for tier in ("shadow", "client"):
        assert "the encoder is frozen" in refused(opened.invert(attack.model_copy(update={"tier": tier})))


def test_releases_that_see_the_adapter_have_three_tiers(trained, tmp_path) -> None:
    opened = Opened(Path(shutil.copytree(trained / "mpft_adapted", tmp_path / "cell")))
    assert [opened.invert(QUICK.model_copy(update={"tier": tier})).reason for tier in TIERS] == ["", "", ""]


def test_a_round_that_was_not_released_is_refused(plain: Opened) -> None:
    reason = refused(plain.invert(QUICK.model_copy(update={"round": 3})))
    assert reason == "round=3 was not released; give one of 0 to 2, or none for all"


@pytest.mark.parametrize("sent", ["counts", "no counts", "sums"])
def test_clusters_of_a_class_in_one_round_count_by_their_records(sent: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    labels, counts = np.array([0, 0, 1, 1]), np.array([3, 1, 6, 2])
    payload = Prototypes(vectors=vectors, labels=labels, counts=counts if sent == "counts" else None)
    if sent == "sums":
        totals = np.array([3.0, 0.2, 6.0, 2.0])  # noise may leave less than a record
        payload = SumsAndCounts(vectors=vectors, labels=labels, totals=totals.astype(np.float32))
    release = Release(round=2, client=0, payload=payload, event=NonPrivate(reason="no noise is added"))
    goals = FeatureInversion(round=2).goals(ServerView((release,), None), num_classes=2, seed=0)
    found = {goal.label: goal.vector for goal in goals if not goal.control}
    wanted = {  # in one pass over all records of a class
        "counts": [(3 * vectors[0] + vectors[1]) / 4, (6 * vectors[2] + 2 * vectors[3]) / 8],
        "no counts": [vectors[:2].mean(0), vectors[2:].mean(0)],
        "sums": [(vectors[0] + vectors[1]) / 4, (vectors[2] + vectors[3]) / 8],
    }[sent]
    for label in (0, 1):
        np.testing.assert_allclose(found[label], wanted[label], rtol=1e-6)
    if sent == "counts":  # as all rounds averaged have it, where there is one
        whole = FeatureInversion().goals(ServerView((release,), None), num_classes=2, seed=0)
        for goal in whole:
            if not goal.control:
                np.testing.assert_allclose(goal.vector, found[goal.label], rtol=1e-6)


def test_a_release_without_prototypes_is_refused(plain: Opened) -> None:
    head = Head(weights=np.zeros((10, 128)))
    found = plain.releasing(lambda r: replace(r, payload=head)).invert(QUICK)
    assert refused(found) == "client 0 sent classifier heads, not prototypes"


def test_prototypes_of_another_width_are_refused(plain: Opened) -> None:
    def cut(release: Release) -> Release:
        sent = release.payload
        assert isinstance(sent, Prototypes)
        return replace(release, payload=replace(sent, vectors=sent.vectors[:, :64]))

    reason = refused(plain.releasing(cut).invert(QUICK))
    assert reason.startswith("prototypes have 64 numbers and embeddings 128")


def test_an_encoder_without_gradients_is_refused(plain: Opened, monkeypatch) -> None:
    black_box = Onnx(path=Path("model.onnx"), output_dim=128, public_data="USPS")
    for ask in (lambda: black_box.image_shape, black_box.module):
        with pytest.raises(InputError, match="encoder onnx gives no gradients"):
            ask()
    config = plain.config.model_copy(update={"encoder": black_box})
    monkeypatch.setattr(inverted, "_config", lambda *_: config)
    assert "usps_cnn" in refused(plain.invert(QUICK))


def test_the_shipped_encoder_reads_what_it_says() -> None:
    encoder = UspsCnn()
    assert encoder.module()(torch.zeros(2, *encoder.image_shape)).shape == (2, encoder.dim)


def test_answers_without_members_are_refused(plain: Opened) -> None:
    answers = [run.truth() for run in plain.cell.runs]
    nobody = [replace(truth, members=np.zeros_like(truth.members)) for truth in answers]
    found = inverted.invert(plain.cell, plain.views, nobody, QUICK)
    assert "names no members" in refused(found)


def test_a_shadow_needs_records_of_its_own(adapter: Opened) -> None:
    adapter.views = [replace(view, reference=None) for view in adapter.views]
    assert "set split.reference above 0" in refused(
        adapter.invert(QUICK.model_copy(update={"tier": "shadow"}))
    )


def test_other_images_than_were_trained_on_are_refused(plain: Opened, monkeypatch) -> None:
    config = RunConfig.from_settings(
        {**BASE, "data": {"name": "digits", "per_class": 39}, "defense": {"name": "none"}}, where="test"
    )
    monkeypatch.setattr(inverted, "_config", lambda *_: config)
    assert "not those the run was trained on" in refused(plain.invert(QUICK))


def test_more_targets_than_there_are_take_all_and_say_so(plain: Opened) -> None:
    attack = FeatureInversion(targets=41, restarts=1, steps=1, batch_size=80)
    found = plain.invert(attack)
    assert len(found.rebuilt) == 40
    assert found.budget.startswith("40 targets per run (all there are; 41 were asked for)")


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"restarts": 0}, {"targets": 0}, {"tier": "white"}, {"lr": 1}]
)
def test_settings_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        FeatureInversion(**wrong)


def test_the_published_budget_that_comes_with_privkit_is_valid() -> None:
    path = Path(__file__).parents[1] / "configs" / "hijack.yaml"
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))["attacks"]
    built = [plug.build("attacks.hijack", settings) for settings in listed]
    assert [one.settings() for one in built] == [
        FeatureInversion(
            tier=tier, targets=12, restarts=5, steps=100_000, learning_rate=0.01, largest_image=None
        ).settings()
        for tier in ("public", "shadow", "client")
    ]


def test_an_encoder_that_gives_no_numbers_is_refused(plain: Opened) -> None:
    view = plain.views[0].transcript.seen_by_server()
    goals = QUICK.goals(view, num_classes=10, seed=0)
    with pytest.raises(NotApplicableError, match="not finite"):
        list(
            QUICK.rebuild(
                goals, lambda x, _: x.flatten(1)[:, :128] * float("nan"), image_shape=(1, 16, 16), seed=0
            )
        )


# ---------------------------------------------------------------------- parts


def test_targets_are_spread_over_clients_and_classes() -> None:
    pairs = [(client, label) for client in range(4) for label in range(10)]
    for seed in range(5):
        chosen = spread(pairs, 12, seed=seed)
        assert len(set(chosen)) == 12
        assert set(np.bincount([c for c, _ in chosen])) == {3}
        assert set(np.bincount([y for _, y in chosen], minlength=10)) == {1, 2}
    assert spread(pairs, 12, seed=0) != spread(pairs, 12, seed=1)
    assert sorted(spread(pairs, 99, seed=0)) == pairs


def quadratic(aim: torch.Tensor):
    """One quadratic per image, of a curvature of its own."""
    return lambda images, rows: ((images - aim[rows]) ** 2).flatten(1).sum(1) * (1 + rows)


def test_a_descent_reaches_each_image_s_own_minimum_and_neighbours_change_nothing() -> None:
    aim = torch.linspace(0.1, 0.9, 5 * 12, dtype=torch.float64).reshape(5, 1, 3, 4)
    rule = StopRule(steps=2000, patience=50, tolerance=1e-9, least_steps=10)
    start = torch.zeros(5, 1, 3, 4, dtype=torch.float64)
    together = descend(start, quadratic(aim), learning_rate=0.05, rule=rule)
    assert together.images.numpy() == pytest.approx(aim.numpy(), abs=1e-3)
    assert together.converged.all()
    for i in range(5):
        alone = descend(
            start[[i]],
            lambda images, rows, i=i: quadratic(aim)(images, rows + i),
            learning_rate=0.05,
            rule=rule,
        )
        assert alone.images[0].numpy() == pytest.approx(together.images[i].numpy(), abs=1e-9)
        assert alone.steps[0] == together.steps[i]


@pytest.mark.parametrize(
    ("patience", "least", "steps", "expected"), [(5, 1, 100, 6), (5, 40, 100, 40), (500, 1, 30, 30)]
)
def test_a_flat_loss_stops_after_patience_but_not_before_the_least(patience, least, steps, expected) -> None:
    rule = StopRule(steps=steps, patience=patience, tolerance=1e-6, least_steps=least)
    seen: list[int] = []
    found = descend(
        torch.zeros(2, 1, 2, 2),
        lambda images, rows: 1 + 0 * images.flatten(1).sum(1),
        learning_rate=0.1,
        rule=rule,
        after_step=seen.append,
    )
    assert found.steps.tolist() == [expected] * 2
    assert found.converged.tolist() == [patience < steps] * 2
    assert seen == list(range(1, expected + 1))


def test_an_image_that_stops_is_frozen_while_others_go_on() -> None:
    aim = torch.full((2, 1, 2, 2), 0.9)
    rule = StopRule(steps=60, patience=3, tolerance=1e-6, least_steps=1)
    weight = torch.tensor([0.0, 1.0])
    found = descend(
        torch.zeros(2, 1, 2, 2),
        lambda images, rows: ((images - aim[rows]) ** 2).flatten(1).sum(1) * weight[rows],
        learning_rate=0.02,
        rule=rule,
    )
    assert found.steps.tolist() == [4, 60]
    assert (found.images[0] == 0.5).all()
    assert (found.images[1] > 0.6).all()


def test_the_loss_keeps_the_best_image_not_the_last() -> None:
    """With so large a step Adam overshoots; what is kept is the best that was met."""
    losses: list[float] = []

    def loss(images: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        found = ((images - 0.6) ** 2).flatten(1).sum(1)
        losses.append(float(found.detach()))
        return found

    rule = StopRule(steps=7, patience=50, tolerance=0.0, least_steps=1)
    found = descend(torch.zeros(1, 1, 1, 1), loss, learning_rate=1.0, rule=rule)
    assert float(found.losses) == min(losses) < losses[-1]
    assert float((found.images - 0.6).square().sum()) == pytest.approx(min(losses))


def test_total_variation_counts_edges_per_pixel() -> None:
    flat = torch.full((1, 1, 4, 4), 0.3)
    edge = torch.zeros(1, 1, 4, 4)
    edge[..., 2:] = 1
    chequered = (torch.arange(4)[:, None] + torch.arange(4)) % 2
    images = torch.cat([flat, edge, chequered[None, None].float()])
    assert _losses.total_variation(images).tolist() == pytest.approx([0, 1 / 3, 2], abs=1e-6)
    assert _losses.mean_square(images).tolist() == pytest.approx([0.09, 0.5, 0.5], abs=1e-6)


def test_a_shift_moves_pixels_and_loses_none() -> None:
    images = torch.rand(6, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    moved = _losses.shifted(images, [torch.Generator().manual_seed(i) for i in range(6)])
    assert not torch.equal(moved, images)
    assert torch.equal(moved.flatten(1).sort().values, images.flatten(1).sort().values)


def test_consistency_changes_the_images_and_stays_repeatable(plain: Opened) -> None:
    steady = QUICK.model_copy(update={"consistency": 1.0})
    before = plain.rebuild(steady)
    shutil.rmtree(plain.views[0].run.path / "audit")
    assert same(plain.rebuild(steady), before)
    assert not np.array_equal(plain.rebuild(QUICK).images, before.images)


def test_of_several_restarts_the_smallest_loss_is_kept() -> None:
    losses = np.array([3.0, 1.0, 2.0, 0.5, 0.6, 0.7])
    images = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    made = Attempts(
        images=images,
        losses=losses,
        cosines=-losses,
        steps=np.arange(6),
        converged=np.ones(6, dtype=bool),
    )
    assert made.best_of(3).images.ravel().tolist() == [1.0, 3.0]
    assert made.best_of(1).losses.tolist() == losses.tolist()


def test_a_picture_is_at_most_96_pixels_long() -> None:
    for shape, size in (((3, 200, 100), (48, 96)), ((1, 16, 16), (16, 16)), ((16, 24), (24, 16))):
        assert Image.open(io.BytesIO(base64.b64decode(png(np.zeros(shape))))).size == size


def test_large_images_are_rebuilt_only_where_it_is_asked_for():
    with pytest.raises(NotApplicableError, match=r"images of 3 x 112 x 112 .*; set largest_image: null"):
        FeatureInversion().refuse_large((3, 112, 112))
    FeatureInversion(largest_image=None).refuse_large((3, 112, 112))
    FeatureInversion().refuse_large((1, 64, 64))
