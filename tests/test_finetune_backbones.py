"""Backbones: any encoder or decoder, its blocks, its classified token, and texts that are odd."""

import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.errors import InputError
from privkit.finetune.backbones.hf import Hf
from privkit.finetune.backbones.minilm import Minilm
from privkit.finetune.backbones.random_bert import RandomBert
from privkit.finetune.backbones.random_gpt2 import RandomGpt2
from privkit.finetune.model import build, embed, logits
from privkit.finetune.texts import AT_ONCE, TOKENS_AT_ONCE, Texts, joined, tokenised
from privkit.finetune.trace import trace
from privkit.finetune.tuning._blocks import blocks
from tests.finetuned import LABELS, SENTENCES, alone, backbone, close, moved, tensors, tuning


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be downloaded."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was looked up on the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f"]
TEXTS = np.array(["a b c", "d", "f e d c b a", "a f"])


def saved(folder: Path, kind: str) -> Path:
    """Write a small model of a family, with a tokenizer of single words, as save_pretrained does."""
    import tokenizers
    import transformers

    of: dict[str, Any] = {
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "max_position_embeddings": 20,
        "vocab_size": len(WORDS),
    }
    models = {
        "bert": lambda: transformers.BertForSequenceClassification(
            transformers.BertConfig(hidden_size=12, intermediate_size=24, **of)
        ),
        "gpt2": lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                n_embd=12,
                n_layer=3,
                n_head=2,
                n_positions=20,
                vocab_size=len(WORDS),
                bos_token_id=2,
                eos_token_id=3,
            )
        ),
        "llama": lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(hidden_size=12, intermediate_size=24, pad_token_id=0, **of)
        ),
        "distilbert": lambda: transformers.DistilBertModel(
            transformers.DistilBertConfig(dim=12, n_layers=3, n_heads=2, hidden_dim=24, vocab_size=len(WORDS))
        ),
    }
    torch.manual_seed(0)
    models[kind]().save_pretrained(folder)
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", model_max_length=20
    ).save_pretrained(folder)
    return folder


FAMILIES = {"bert": False, "gpt2": True, "llama": True, "distilbert": False}


@pytest.mark.parametrize("kind", ["adapter", "lora"])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_family_can_be_tuned_from_a_folder(family, kind, tmp_path):
    net = Hf(path=saved(tmp_path, family), public_data="none", max_length=10, layers=2)
    assert net.causal == FAMILIES[family]
    how = tuning("adapter", width=5)
    if kind == "lora":
        how = tuning("lora", rank=2, targets=["q_lin", "v_lin"] if family == "distilbert" else None)
    model = moved(build(net, how, classes=2, seed=0))
    assert len(blocks(model.net)) == 2
    texts, labels = net.texts(TEXTS), LABELS[:4]
    exposure = trace(model, texts, labels)
    for record in range(4):
        own = alone(model, texts, labels, record)
        for name, found in exposure.traces.items():
            assert close(found.gradients()[record], own[name], part=2e-3)


def test_which_token_is_classified_can_be_chosen(tmp_path):
    folder = saved(tmp_path, "bert")
    last = Hf(path=folder, public_data="none", max_length=10, classified="last")  # pyright: ignore[reportArgumentType]
    texts = last.texts(TEXTS)
    with torch.no_grad():
        hidden = last.net()(input_ids=torch.from_numpy(texts.ids[[2]])).last_hidden_state
    assert last.causal
    assert np.allclose(embed(last.net(), texts, causal=True)[2], hidden[0, 5], atol=1e-6)


def test_a_name_is_looked_up_in_the_local_cache_and_nowhere_else():
    with pytest.raises(
        InputError, match="path='nobody/nothing' is no folder here, and no model of that name"
    ):
        Hf(path=Path("nobody/nothing"), public_data="none").net()


def test_a_model_of_two_rows_of_blocks_is_refused(tmp_path):
    import transformers

    transformers.T5Config(
        d_model=8, num_layers=1, num_heads=1, d_ff=8, d_kv=8, vocab_size=10
    ).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="is a t5 model, which is not one row of blocks"):
        Hf(path=tmp_path, public_data="none").net()


@pytest.mark.parametrize(
    ("net", "width", "count", "heads"),
    [(RandomBert(layers=1), 768, 12, 12), (RandomGpt2(layers=1), 768, 12, 12)],
    ids=["bert-base", "gpt2-small"],
)
def test_random_models_have_the_published_shapes(net, width, count, heads):
    whole = net.shape()
    assert (whole.num_hidden_layers, whole.hidden_size, whole.num_attention_heads) == (count, width, heads)
    model = build(net, tuning("adapter"), classes=5, seed=0)
    assert {n: tuple(p.shape) for n, p in model.trained().items() if n.endswith("weight")} == {
        "tuning.0.down.weight": (width // 2, width),
        "tuning.0.up.weight": (width, width // 2),
        "head.weight": (5, width),
    }
    assert logits(model, net.texts(SENTENCES)).shape == (len(SENTENCES), 5)


def test_the_large_sizes_are_those_of_the_papers():
    large = RandomGpt2(size="large").shape()  # pyright: ignore[reportArgumentType]
    assert (large.num_hidden_layers, large.hidden_size, large.num_attention_heads) == (36, 1280, 20)
    assert RandomBert().shape().intermediate_size == 3072


def test_random_weights_are_those_of_their_own_seed():
    one, same, other = (RandomBert(size="tiny", weights_seed=s) for s in (0, 0, 1))  # pyright: ignore
    texts = one.texts(SENTENCES)
    first = embed(one.net(), texts, causal=False)
    assert np.array_equal(first, embed(same.net(), texts, causal=False))
    assert not np.allclose(first, embed(other.net(), texts, causal=False))
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_nothing_of_the_backbone_is_trained():
    for kind in ("adapter", "lora"):
        model = build(backbone("minilm", layers=2), tuning(kind), classes=2, seed=0)
        for name in model.trained():
            assert name.startswith(("tuning.", "head.")) or "lora_" in name


def test_adapters_stand_beside_a_residual_connection():
    net = backbone("random_bert", size="tiny")
    model = build(net, tuning("adapter"), classes=2, seed=0)
    model.load({n: torch.zeros_like(p) if n.startswith("tuning") else p for n, p in model.snapshot().items()})
    texts = net.texts(SENTENCES)
    with torch.no_grad():
        wanted = model.head(torch.from_numpy(embed(net.net(), texts, causal=False)))
    assert np.allclose(logits(model, texts), wanted.numpy(), atol=1e-6)


def test_lora_begins_as_the_pretrained_model_and_is_scaled_by_alpha_over_rank():
    net = backbone("random_bert", size="tiny")
    texts = net.texts(SENTENCES)
    plain, twice = (
        moved(build(net, tuning("lora", rank=2, alpha=a), classes=2, seed=0)) for a in (None, 4.0)
    )
    assert not np.allclose(logits(plain, texts), logits(twice, texts))
    halved = {n: p / 2 if "lora_B" in n else p for n, p in twice.snapshot().items()}
    twice.load(halved)
    assert np.allclose(logits(plain, texts), logits(twice, texts), atol=1e-6)


def test_targets_that_are_not_there_are_refused():
    with pytest.raises(InputError, match=r"targets=\['nowhere'\]: .*name linear maps of its blocks"):
        build(backbone("random_bert", size="tiny"), tuning("lora", targets=["nowhere"]), classes=2, seed=0)


def test_without_peft_lora_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match="tuning lora needs peft"):
        build(backbone("random_bert", size="tiny"), tuning("lora"), classes=2, seed=0)


def test_more_blocks_or_tokens_than_there_are_are_refused():
    with pytest.raises(InputError, match="layers=7: the model has 6"):
        Minilm(layers=7).net()
    with pytest.raises(InputError, match="max_length=513: the model reads 512 tokens"):
        RandomGpt2(max_length=513).tokenizer()
    with pytest.raises(InputError, match="max_length=513: the model reads 512 tokens"):
        Minilm(max_length=513).tokenizer()


# ---------------------------------------------------------------------- texts


def test_a_text_that_is_too_long_is_cut_and_a_short_one_is_not():
    net = backbone("minilm", layers=1)
    long = net.texts(np.array(["good " * 100, "good"]))
    assert long.lengths.tolist() == [24, 3]
    assert long.ids[0, -1] == net.tokenizer().sep_token_id


@pytest.mark.parametrize("name", ["minilm", "random_gpt2"])
@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_refused_by_its_place(name, text):
    net = backbone("minilm", layers=1) if name == "minilm" else backbone(name, size="tiny")
    with pytest.raises(InputError, match=r"sentence 1 \('.*'\) has no token"):
        net.texts(np.array(["good", text]))


def test_records_that_are_no_sentences_are_refused():
    with pytest.raises(InputError, match=r"not uint8 of \[2, 8, 8\]"):
        backbone("minilm").texts(np.zeros((2, 8, 8), np.uint8))


def test_no_sentences_are_no_texts():
    assert len(tokenised(None, np.zeros(0, np.str_), max_length=4)) == 0


@given(st.lists(st.integers(1, 300), min_size=1, max_size=150))
def test_every_text_passes_once_and_never_too_many_at_a_time(lengths):
    texts = Texts(np.ones((len(lengths), max(lengths)), np.int64), np.array(lengths, np.int64))
    groups = list(texts.groups())
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    for rows in groups:
        assert len(rows) <= AT_ONCE
        assert len(rows) == 1 or len(rows) * texts.lengths[rows].max() <= TOKENS_AT_ONCE


def test_texts_of_two_parts_keep_their_tokens():
    net = backbone("minilm")
    one, two = net.texts(SENTENCES[:2]), net.texts(SENTENCES[2:])
    both, whole = joined([one, two]), net.texts(SENTENCES)
    assert np.array_equal(both.ids, whole.ids)
    assert np.array_equal(both.lengths, whole.lengths)
    assert np.array_equal(whole.take(np.array([1])).ids, one.take(np.array([1])).ids)


def test_padding_changes_no_decoder_s_last_token():
    net = backbone("random_gpt2", size="tiny")
    texts = net.texts(SENTENCES)
    together = embed(net.net(), texts, causal=True)
    for record in range(len(SENTENCES)):
        one = texts.take(np.array([record]))
        with torch.no_grad():
            hidden = net.net()(input_ids=tensors(one)[0]).last_hidden_state
        assert np.allclose(together[record], hidden[0, -1].numpy(), atol=1e-5)
