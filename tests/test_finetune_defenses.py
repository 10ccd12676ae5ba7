"""Defenses of tuned transformers: what each changes, and that nothing else changes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from accountant import claims, subsampled
from accountant.contract import Relation
from accountant.events import Repeated, SubsampledGaussian
from privkit import plug
from privkit.errors import InputError
from privkit.finetune import sweeps
from privkit.finetune.batches import Batch
from privkit.finetune.defenses._base import AbstractTuningDefense
from privkit.finetune.defenses._fisguard import independent_columns, leading, numerical_rank
from privkit.finetune.defenses._min_max import MinMaxGuard
from privkit.finetune.guard import Guard
from privkit.finetune.lab import Lab
from privkit.finetune.loop import train
from privkit.finetune.model import Tuned, build, logits, pooled
from privkit.finetune.trace import trace
from privkit.finetune.view import view
from tests.finetuned import LABELS, SENTENCES, alone, config, new_lab, tensors

MINILM = {"backbone": {"name": "minilm", "layers": 2, "max_length": 24}}
LORA = {"tuning": {"name": "lora", "rank": 3}}


def unprotected(**changes: object) -> Lab:
    return new_lab(config(clip=None, **changes))


def norm(gradient: dict[str, np.ndarray]) -> float:
    return float(np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradient.values())))


def own_gradients(model: Tuned, batch: Batch) -> list[dict[str, np.ndarray]]:
    """Return the gradient of every record by autograd, one after the other."""
    return [alone(model, batch.texts, batch.labels, record) for record in range(len(batch.labels))]


# ---------------------------------------------------------------------- FISGuard


@pytest.mark.parametrize("changes", [MINILM, MINILM | LORA, {}, LORA], ids=str)
def test_under_fisguard_the_model_begins_as_the_pretrained_one(changes):
    lab = new_lab(config(defense={"name": "fisguard", "rank": 4}, **changes))
    texts = lab.config.backbone.texts(SENTENCES)
    net = lab.config.backbone.net()
    plain = build(lab.config.backbone, lab.config.tuning, classes=2, seed=lab.seed)
    with torch.no_grad():
        wanted = plain.head(pooled(net, *tensors(texts), causal=False))
    assert np.allclose(logits(lab.model, texts), wanted.numpy(), atol=1e-5)
    trained = lab.model.trained()
    assert set(trained) == {n for n in trained if n.endswith((".up.weight", ".lora_B.default.weight"))} | {
        "head.base.bias"
    }


def stacked(lab: Lab, name: str, module: torch.nn.Linear) -> np.ndarray:
    """Return what a fixed map reads of public records, a row per token, read one sentence at a time."""
    rows: list[np.ndarray] = []
    handle = module.register_forward_hook(lambda m, x, out: rows.append(x[0].flatten(0, -2).numpy()))
    with torch.no_grad():
        for record in range(len(lab.public)):
            lab.model(*tensors(lab.public.texts.take(np.array([record]))))
    handle.remove()
    return np.concatenate(rows).astype(np.float64)


@pytest.mark.parametrize("changes", [MINILM, LORA], ids=str)
def test_the_fixed_directions_are_the_leading_singular_vectors_of_public_tokens(changes):
    lab = new_lab(config(defense={"name": "fisguard", "rank": 4}, **changes))
    fixed = {
        name: m
        for name, m in lab.model.named_modules()
        if isinstance(m, torch.nn.Linear) and name.endswith(("down", "lora_A.default"))
    }
    assert len(fixed) == (3 if changes is MINILM else 5)
    for name, module in fixed.items():
        q = module.weight.detach().numpy().astype(np.float64)
        assert np.allclose(q @ q.T, np.eye(4), atol=1e-5)
        values, vectors = np.linalg.svd(stacked(lab, name, module), full_matrices=False)[1:]
        if values[3] > 1.05 * values[4]:
            assert np.allclose(q.T @ q, vectors[:4].T @ vectors[:4], atol=1e-3)


def test_random_directions_are_orthonormal_and_the_seed_s():
    of = {"name": "fisguard", "rank": 4, "basis": "random"}
    first, again, other = (new_lab(config(defense=of), seed=seed).model for seed in (0, 0, 1))
    q = first.get_parameter("tuning.0.down.weight")
    assert torch.allclose(q @ q.T, torch.eye(4), atol=1e-6)
    assert torch.equal(q, again.get_parameter("tuning.0.down.weight"))
    assert not torch.allclose(q, other.get_parameter("tuning.0.down.weight"))
    assert not torch.allclose(q, first.get_parameter("tuning.1.down.weight"))


def test_a_head_that_is_not_protected_stays_as_it_is():
    lab = new_lab(config(defense={"name": "fisguard", "rank": 4, "protect_head": False}))
    assert "head.weight" in lab.model.trained()


@pytest.mark.parametrize(("rank", "why"), [(32, "inputs of width 32"), (500, "inputs of width 32")])
def test_a_subspace_as_wide_as_the_input_is_refused(rank, why):
    with pytest.raises(InputError, match=why):
        _ = new_lab(config(defense={"name": "fisguard", "rank": rank})).model


def test_a_subspace_of_no_directions_is_refused():
    with pytest.raises(InputError, match="rank=0"):
        config(defense={"name": "fisguard", "rank": 0})


def test_more_directions_than_public_records_show_are_refused():
    lab = new_lab(config(defense={"name": "fisguard", "rank": 20}, public=3))
    with pytest.raises(InputError, match=r"rank=20: what public records show head has 3 directions"):
        _ = lab.model


def test_a_full_rank_gradient_leaves_no_residual_and_a_smaller_one_does():
    """T1 and T4, on real gradients: two blocks of MiniLM, adapters of rank 4 and 40."""
    residual, ranks = {}, {}
    for rank in (4, 40):
        lab = new_lab(config(defense={"name": "fisguard", "rank": rank, "protect_head": False}, **MINILM))
        rows = lab.rows(0, 0)[0][:2]
        batch = lab.clients[0].texts.take(rows), lab.clients[0].labels[rows]
        name = "tuning.0.up.weight"
        g = trace(lab.model, *batch, maps=[name]).traces[name].gradients().sum(0).astype(np.float64)
        others = lab.clients[0].parts.non_members[:5]
        z = trace(lab.model, lab.clients[0].texts.take(others), lab.clients[0].labels[others], maps=[name])
        z_Nr = z.traces[name].inputs[:, 1].astype(np.float64)
        v = np.linalg.svd(g, full_matrices=False)[2]
        ranks[rank] = numerical_rank(g)
        span = v[: ranks[rank]]
        residual[rank] = np.linalg.norm(z_Nr - z_Nr @ span.T @ span, axis=1) / np.linalg.norm(z_Nr, axis=1)
    assert ranks[4] == 4
    assert (residual[4] < 1e-5).all()
    assert ranks[40] < 40
    assert (residual[40] > 1e-3).all()


def test_behind_the_last_block_the_gradient_has_no_more_directions_than_classes_less_one():
    """T7: the theorem's premise fails there for every rank above C - 1, with and without public directions."""
    lab = new_lab(config(defense={"name": "fisguard", "rank": 4}, **MINILM))
    batch = lab.batch(0, 0, [0])
    found = Guard(lab.config).gradients(lab.model, batch)[0]
    assert numerical_rank(found["tuning.1.up.weight"].numpy()) == 1
    assert numerical_rank(found["head.up.weight"].numpy()) == 1
    assert numerical_rank(found["tuning.0.up.weight"].numpy()) == 4


@pytest.mark.parametrize("changes", [{}, LORA], ids=str)
def test_before_the_first_step_one_pass_serves_all_ranks_and_no_fixed_map_has_a_gradient(changes):
    """T8: at U = 0 its gradient knows nothing of U, and that of rank r is the first r columns of any larger one."""
    found = {}
    for rank in (3, 8):
        lab = new_lab(config(defense={"name": "fisguard", "rank": rank}, **changes))
        batch = lab.batch(0, 0, [0])
        found[rank] = Guard(lab.config.model_copy(update={"clip": None})).gradients(lab.model, batch)[0]
        fixed = {n for n, p in lab.model.named_parameters() if not p.requires_grad}
        assert not fixed & set(found[rank])
        assert any(n.endswith(("down.weight", "lora_A.default.weight")) for n in fixed)
    assert set(found[3]) == set(found[8])
    for name, g in found[3].items():
        wanted = found[8][name] if g.ndim == 1 else found[8][name][:, :3]
        assert np.allclose(g, wanted, atol=1e-5 * float(found[8][name].abs().max())), name


def test_the_rank_audit_lowers_or_refuses_what_has_too_few_directions_and_nothing_else():
    sent = {}
    for audit in ("off", "lower", "refuse"):
        lab = new_lab(config(defense={"name": "fisguard", "rank": 4, "rank_audit": audit}, **MINILM))
        guard = lab.guard()
        found = guard.gradients(lab.model, lab.batch(0, 0, [0]))[0]
        sent[audit] = guard.sent({n: g.numpy() for n, g in found.items()})
    last, first = "tuning.1.up.weight", "tuning.0.up.weight"
    assert numerical_rank(sent["off"][last]) == 1
    assert np.array_equal(sent["lower"][last][:, 0], sent["off"][last][:, 0])
    assert not sent["lower"][last][:, 1:].any()
    assert not sent["refuse"][last].any()
    for audit in ("lower", "refuse"):
        assert np.array_equal(sent[audit][first], sent["off"][first])
        assert np.array_equal(sent[audit]["head.base.bias"], sent["off"]["head.base.bias"])


@pytest.mark.parametrize(
    ("gradient", "rank", "kept"),
    [
        ([[2, 1], [1, 3], [1, 2]], 2, 2),  # T1
        ([[1, 1], [2, 2], [0, 0]], 1, 1),  # T3
        ([[3, 4], [6, 8]], 1, 1),  # T4
        ([[0, 0], [0, 0]], 0, 0),
        ([[0, 1], [0, 2]], 1, 0),
    ],
)
def test_ranks_are_those_of_the_worked_examples(gradient, rank, kept):
    g = np.array(gradient, np.float32)
    assert numerical_rank(g) == rank
    assert independent_columns(g) == kept


@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_kept_columns_have_full_rank_and_one_more_would_not(rank, columns, seed):
    rng = np.random.default_rng(seed)
    g = rng.standard_normal((9, rank)) @ rng.standard_normal((rank, columns))
    kept = independent_columns(g)
    assert kept == min(rank, columns)


def test_leading_directions_need_enough_of_them():
    x = np.outer([1.0, 2.0], [1.0, 0.0, 0.0])
    assert np.allclose(np.abs(leading(torch.from_numpy(x.T @ x), 1, where="it").numpy()), [[1, 0, 0]])
    with pytest.raises(InputError, match="rank=2: what public records show it has 1 directions"):
        leading(torch.from_numpy(x.T @ x), 2, where="it")


# ---------------------------------------------------------------------- DP-SGD


def dpsgd(sigma: float = 1e-9, clip_norm: float = 0.05, **changes: object) -> Lab:
    of = {"name": "dpsgd", "noise_multiplier": sigma, "clip_norm": clip_norm}
    return new_lab(config(**{"defense": of, "batch": 6, **changes}))


@pytest.mark.parametrize(
    "changes", [MINILM, LORA, {"backbone": {"name": "random_gpt2", "size": "tiny"}}], ids=str
)
def test_every_record_s_gradient_is_clipped_by_itself(changes):
    lab = dpsgd(**changes)
    batch = lab.batch(0, 0, [1])
    found = lab.guard().gradients(lab.model, batch)[1]
    each = own_gradients(lab.model, batch)
    norms = [norm(g) for g in each]
    clip = float(np.median(norms))
    lab = dpsgd(clip_norm=clip, **changes)
    found = lab.guard().gradients(lab.model, batch)[1]
    for name, g in found.items():
        wanted = sum(own[name] * min(1.0, clip / n) for own, n in zip(each, norms, strict=True)) / 6
        assert np.allclose(g.numpy(), wanted, rtol=1e-3, atol=1e-3 * clip / 100), name


@given(record=st.integers(0, 5))
def test_no_record_moves_the_sum_by_more_than_the_clip_norm(record):
    lab = DPSGD
    batch = lab.batch(0, 0, [1])
    others = np.delete(np.arange(6), record)
    less = Batch(
        texts=batch.texts.take(others),
        labels=batch.labels[others],
        clients=batch.clients[others],
        sizes={1: 1.0},
        round=0,
    )
    whole = Batch(texts=batch.texts, labels=batch.labels, clients=batch.clients, sizes={1: 1.0}, round=0)
    one, two = (lab.guard().gradients(lab.model, b)[1] for b in (whole, less))
    moved = norm({name: (g - two[name]).numpy() for name, g in one.items()})
    assert 0.049 < moved < 0.05 * (1 + 1e-4)


DPSGD = dpsgd()


def test_the_noise_has_the_stated_standard_deviation_and_is_fresh():
    quiet, loud = dpsgd(), dpsgd(sigma=2.0)
    batch = quiet.batch(0, 0, [1])
    sums = quiet.guard().gradients(quiet.model, batch)[1]
    noisy = loud.guard().gradients(loud.model, batch)[1]
    later = loud.guard().gradients(loud.model, quiet.batch(1, 0, [1]))[1]
    drawn = np.concatenate([(noisy[n] - sums[n]).numpy().ravel() for n in sums])
    again = np.concatenate([later[n].numpy().ravel() for n in sums])
    wanted = 2.0 * 0.05 / 6
    assert abs(drawn.std() / wanted - 1) < 4 / np.sqrt(2 * len(drawn))
    assert abs(np.corrcoef(drawn, again)[0, 1]) < 5 / np.sqrt(len(drawn))


def test_an_empty_poisson_batch_sends_noise_of_the_same_size():
    lab = dpsgd(sigma=2.0, sampling="poisson")
    nobody = np.zeros(0, np.int64)
    empty = Batch(
        texts=lab.clients[1].texts.take(nobody), labels=nobody, clients=nobody, sizes={1: 6.0}, round=0
    )
    found = lab.guard().gradients(lab.model, empty)[1]
    values = np.concatenate([g.numpy().ravel() for g in found.values()])
    assert set(found) == set(lab.model.trained())
    assert abs(values.std() / (2.0 * 0.05 / 6) - 1) < 4 / np.sqrt(2 * len(values))


def test_opacus_leaves_the_model_as_it_was():
    lab = dpsgd()
    texts = lab.config.backbone.texts(SENTENCES)
    before = logits(lab.model, texts)
    lab.guard().gradients(lab.model, lab.batch(0, 0, [1]))
    assert np.array_equal(logits(lab.model, texts), before)
    assert not any(m.training for m in lab.model.modules())
    assert all(p.grad is None for p in lab.model.parameters())
    exposure = trace(lab.model, texts, LABELS)
    assert np.isfinite(exposure.losses).all()


def test_noise_can_be_added_to_the_maps_of_fisguard():
    of = {"name": "dpsgd", "noise_multiplier": 1e-9, "clip_norm": 1e6, "fisguard": {"rank": 3}}
    lab, bare = new_lab(config(defense=of)), unprotected(defense={"name": "fisguard", "rank": 3})
    batch = lab.batch(0, 0, [1])
    found, wanted = (
        lab.guard().gradients(lab.model, batch)[1],
        Guard(bare.config).gradients(bare.model, batch)[1],
    )
    assert set(found) == set(wanted)
    assert {tuple(found[n].shape) for n in found if n.endswith("up.weight")} == {(32, 3), (2, 3)}
    for name, g in found.items():
        assert torch.allclose(g, wanted[name], rtol=1e-3, atol=1e-3)
    assert config(**{"defense": lab.config.defense.settings()}).defense == lab.config.defense


def test_steps_on_poisson_samples_cost_what_opacus_says_or_less():
    from opacus.accountants import PRVAccountant, RDPAccountant

    terms = config(defense="dpsgd", sampling="poisson", batch=16)
    event = terms.defense.event(terms, records=285)
    assert isinstance(event, SubsampledGaussian)
    ours = claims.claim(Repeated(event=event, count=50), delta=1e-5)
    assert ours.covered
    assert ours.relation is Relation.ADD_REMOVE
    theirs = {}
    for accountant in (PRVAccountant(), RDPAccountant()):
        accountant.history = [(1.0, 16 / 285, 50)]
        theirs[accountant.mechanism()] = accountant.get_epsilon(delta=1e-5)
    assert ours.epsilon <= theirs["rdp"]
    assert ours.epsilon == pytest.approx(theirs["prv"], rel=0.02)


def test_replacing_a_record_costs_twice_the_shift_of_adding_one():
    terms = config(defense="dpsgd", sampling="poisson", batch=10_000)
    event = Repeated(event=terms.defense.event(terms, records=10), count=4)
    by_relation = claims.under_relations(event, delta=1e-5)
    for relation, sigma in ((Relation.ADD_REMOVE, 1.0), (Relation.REPLACE_ANY_LABEL, 0.5)):
        alone = subsampled.epsilon(noise_multiplier=sigma, sampling_rate=1.0, steps=4, delta=1e-5)
        assert by_relation[relation] == pytest.approx(alone.epsilon)


def test_batches_of_a_fixed_size_are_priced_without_amplification_for_replacing_a_record():
    terms = config(defense="dpsgd")
    found = claims.claim(terms.defense.event(terms, records=285), delta=1e-5)
    whole = subsampled.epsilon(noise_multiplier=0.5, sampling_rate=1.0, steps=1, delta=1e-5)
    assert found.covered
    assert found.relation is Relation.REPLACE_ANY_LABEL
    assert found.epsilon == pytest.approx(whole.epsilon)
    assert isinstance(
        claims.under_relations(terms.defense.event(terms, records=285), delta=1e-5)[Relation.ADD_REMOVE], str
    )


def test_local_steps_are_all_paid_for():
    terms = config(defense="dpsgd", local_steps=3, upload="delta", sampling="poisson")
    event = terms.defense.event(terms, records=100)
    assert isinstance(event, Repeated)
    assert event.count == 3


# ---------------------------------------------------------------------- L2, label smoothing, dropout, Min-Max


def test_l2_adds_a_multiple_of_all_weights_but_the_head_s():
    lab = unprotected(defense={"name": "l2", "strength": 0.1})
    batch = lab.batch(0, 0, [0, 1])
    plain = Guard(lab.config).gradients(lab.model, batch)
    found = lab.guard().gradients(lab.model, batch)
    for client, named in found.items():
        for name, g in named.items():
            pull = 0 if name.startswith("head.") else 0.1 * lab.model.trained()[name].detach()
            assert torch.allclose(g, plain[client][name] + pull, atol=1e-7)


def test_label_smoothing_moves_a_share_of_every_target():
    guard = new_lab(config(defense={"name": "label_smoothing", "alpha": 0.2})).guard()
    z, y = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0])
    logs = torch.log_softmax(z, 1)
    wanted = -(0.8 * logs[torch.arange(5), y] + 0.2 * logs.mean(1))
    assert torch.allclose(guard.record_losses(z, y), wanted)


@pytest.mark.parametrize("changes", [{}, LORA], ids=str)
def test_dropout_is_the_client_s_and_the_round_s_and_gone_afterwards(changes):
    lab = unprotected(defense={"name": "dropout", "p": 0.4}, **changes)
    guard, batch = lab.guard(), lab.batch(0, 0, [0])
    texts = lab.config.backbone.texts(SENTENCES)
    before = logits(lab.model, texts)
    first, again = (guard.gradients(lab.model, batch)[0] for _ in range(2))
    assert all(torch.equal(g, again[name]) for name, g in first.items())
    other = Batch(
        texts=batch.texts, labels=batch.labels, clients=batch.clients + 1, sizes={1: batch.sizes[0]}, round=0
    )
    later = Batch(texts=batch.texts, labels=batch.labels, clients=batch.clients, sizes=batch.sizes, round=1)
    for changed, client in ((other, 1), (later, 0)):
        assert not torch.equal(
            guard.gradients(lab.model, changed)[client]["head.weight"], first["head.weight"]
        )
    assert np.array_equal(logits(lab.model, texts), before)


def test_nobody_else_makes_the_passes_of_a_client_with_dropout(tmp_path):
    for name, repeatable in (("dropout", False), ("none", True)):
        made = config(rounds=1, questions={"clients": 1}, defense=name)
        assert view(train(made, tmp_path / name, device="cpu"), losses=False).repeatable is repeatable


def test_dropout_keeps_the_expected_gradient_of_what_reads_the_dropped_features():
    """With a head and up projections of zeros, nothing but what the head reads is changed."""
    lab = unprotected(defense={"name": "dropout", "p": 0.4})
    silent = {
        n: torch.zeros_like(p) for n, p in lab.model.snapshot().items() if n.startswith("head") or ".up." in n
    }
    lab.model.load(lab.model.snapshot() | silent)
    guard, first = lab.guard(), lab.batch(0, 0, [0])
    plain = Guard(lab.config).gradients(lab.model, first)[0]
    found = [
        guard.gradients(
            lab.model,
            Batch(
                texts=first.texts, labels=first.labels, clients=first.clients, sizes=first.sizes, round=round
            ),
        )[0]
        for round in range(60)
    ]
    assert all(torch.allclose(g["head.bias"], plain["head.bias"], atol=1e-6) for g in found)
    some = torch.stack([g["head.weight"] for g in found])
    error = (some.mean(0) - plain["head.weight"]).abs() / (some.std(0) / 60**0.5)
    assert error.max() < 5
    assert error.median() < 1.5


def test_min_max_adds_what_a_trained_adversary_gains_from_each_record():
    lab = unprotected(defense={"name": "min_max", "strength": 2.0, "hidden": 5})
    guard = lab.guard()
    assert isinstance(guard, MinMaxGuard)
    z, y = torch.randn(4, 2, requires_grad=True), torch.tensor([0, 1, 1, 0])
    owners = np.array([0, 2, 0, 2])
    found = guard.losses(z, y, owners)
    for record, client in enumerate(owners.tolist()):
        seen = torch.cat([torch.softmax(z[record], 0), torch.nn.functional.one_hot(y[record], 2).float()])
        gain = torch.log(torch.sigmoid(guard.adversaries[client](seen)[0]))
        assert torch.allclose(found[record], cross_entropy(z[[record]], y[[record]]) + 2.0 * gain, atol=1e-6)


def test_an_adversary_learns_from_each_batch_and_is_kept():
    lab = unprotected(defense={"name": "min_max", "updates": 5})
    guard, batch = lab.guard(), lab.batch(0, 0, [0, 1])
    assert isinstance(guard, MinMaxGuard)
    before = guard.memory()
    first = guard.gradients(lab.model, batch)
    after = guard.memory()
    assert {k for k in before if not np.array_equal(before[k], after[k])} == {
        k for k in before if k[0] in "01"
    }
    resumed = lab.guard()
    resumed.restore(after)
    guards = [g.gradients(lab.model, batch) for g in (guard, resumed)]
    for name, g in guards[0][1].items():
        assert torch.equal(g, guards[1][1][name])
    assert not torch.equal(
        first[0]["head.weight"], Guard(lab.config).gradients(lab.model, batch)[0]["head.weight"]
    )


def test_the_sweeps_of_the_paper_are_all_there_and_can_be_built():
    cells = sweeps.defenses()
    paper = {"dpsgd": 5, "l2": 4, "min_max": 5, "dropout": 4, "label_smoothing": 5}
    assert {n: sum(c["name"] == n for c in cells.values()) for n in paper} == paper
    for name, section in cells.items():
        built = config(defense=section).defense
        assert built.settings()["name"] == section["name"], name
        assert set(section) == {"name", built.varied} - {""}


def test_every_defense_names_the_number_that_says_how_strong_it_is():
    for name, found in plug.every("privkit.finetune.defenses"):
        assert issubclass(found, AbstractTuningDefense)
        assert (found.varied == "") == (name == "none")
        assert name == "none" or found.model_fields[found.varied].annotation in (int, float)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"name": "dpsgd", "noise_multiplier": 0}, "greater than 0"),
        ({"name": "dropout", "p": 1.0}, "less than 1"),
        ({"name": "label_smoothing", "alpha": -0.1}, "greater than 0"),
        ({"name": "min_max", "strengh": 1}, "Did you mean strength"),
        ({"name": "fisguard", "rank": 2, "rank_audit": "maybe"}, "rank_audit='maybe'"),
        ("igpp", "unknown"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_sentence(section, why):
    with pytest.raises(InputError, match=why) as refused:
        config(defense=section)
    assert "\n" not in str(refused.value)


def test_a_view_says_to_what_norm_whole_gradients_were_shortened(tmp_path):
    for name, clip in (("none", 0.5), ("l2", 0.5), ("dpsgd", None)):
        made = config(rounds=1, questions={"clients": 1}, defense=name, clip=0.5)
        assert view(train(made, tmp_path / name, device="cpu"), losses=False).clip == clip
