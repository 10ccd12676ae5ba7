"""Models in a local folder, as the transformers library writes them; nothing is ever downloaded."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privkit.errors import InputError
from privkit.models import _package

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedConfig

VOCABULARIES = {"tokenizer.json", "vocab.json", "vocab.txt"}


def config(folder: Path) -> "PreTrainedConfig":
    """Return what ``config.json`` in a folder says.

    Raises:
        InputError: transformers is not installed, or there is no such file, or it describes no known model.
    """
    if not (folder / "config.json").is_file():
        raise InputError(
            f"path={str(folder)!r} has no config.json; give the folder that save_pretrained wrote."
        )
    with _quiet() as transformers:
        try:
            return transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers raises errors of many classes
            raise _unreadable(folder, error) from None


def has_weights(folder: Path) -> bool:
    """Return whether a folder holds weights in safetensors files."""
    return any(folder.glob("*.safetensors"))


def model(folder: Path, settings: "PreTrainedConfig") -> "Module":
    """Return the base model with the folder's weights, float32 on the CPU, in evaluation mode.

    Raises:
        InputError: weights are missing, of another shape than the settings say, or only in a pickle file.
    """
    import torch

    if not has_weights(folder):
        raise InputError(
            f"path={str(folder)!r} has no model.safetensors; save the model with save_pretrained, which writes it."
        )
    with _quiet() as transformers:
        try:
            net, loaded = transformers.AutoModel.from_pretrained(
                folder,
                config=settings,
                local_files_only=True,
                use_safetensors=True,
                dtype=torch.float32,
                # the fused kernels have no second derivative, and are no faster on a CPU
                attn_implementation="eager",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are refused below, by name
            )
        except Exception as error:  # transformers raises errors of many classes
            raise _unreadable(folder, error) from None
    for name, found, wanted in sorted(loaded["mismatched_keys"]):
        raise InputError(
            f"path={str(folder)!r}: {name} has shape {list(found)}, and its config.json asks for {list(wanted)}; give "
            "the config.json that belongs to these weights."
        )
    # a pooler is not used here, and a classifier's file has none
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise InputError(
            f"path={str(folder)!r}: its weights lack {len(missing)} tensors that its config.json asks for, "
            f"{missing[0]} for one; give the config.json that belongs to them."
        )
    return net.eval()


def random_model(settings: "PreTrainedConfig", *, seed: int) -> "Module":
    """Return the base model as it is drawn before any training, in evaluation mode."""
    import torch

    with _quiet() as transformers, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.AutoModel.from_config(settings, attn_implementation="eager").float().eval()


def tokenizer(folder: Path, *, max_length: int) -> Any:
    """Return what cuts sentences into the tokens of a folder's model.

    Raises:
        InputError: its files are missing, or the model reads fewer than ``max_length`` tokens.
    """
    # without one, some versions give a tokenizer that knows no word
    if not any(path.name in VOCABULARIES or path.suffix == ".model" for path in folder.iterdir()):
        raise InputError(
            f"path={str(folder)!r} has no vocabulary; save the tokenizer with save_pretrained beside the model."
        )
    with _quiet() as transformers:
        try:
            cutter = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers raises errors of many classes
            raise _unreadable(folder, error) from None
    most = min(
        cutter.model_max_length, getattr(config(folder), "max_position_embeddings", cutter.model_max_length)
    )
    if max_length > most:
        raise InputError(f"max_length={max_length}: the model reads {most} tokens; give no more than that.")
    return cutter


def drawn(net: "Module") -> str:
    """Return the sha256 of a model's weights as they are in memory, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def fingerprint(folder: Path) -> str:
    """Return one sha256 for all weights, settings and vocabularies in a folder, in hexadecimal."""
    names = sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix in {".safetensors", ".json", ".txt", ".model"} and path.is_file()
    )
    content = [[name, _package.digest(folder / name)] for name in names]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def said(folder: Path, file: str) -> dict[str, Any]:
    """Return a JSON file of a folder, empty if there is none.

    Raises:
        InputError: it is no JSON.
    """
    path = folder / file
    try:
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise _unreadable(folder, error) from None


@contextmanager
def _quiet() -> Iterator[Any]:
    """Give transformers, without its progress bars and its reports on what was loaded."""
    try:
        import transformers
    except ImportError:
        raise InputError("this encoder needs transformers; run pip install 'privkit-audit[hf]'.") from None
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _unreadable(folder: Path, error: Exception) -> InputError:
    first = str(error).strip().partition("\n")[0].rstrip(".")
    return InputError(
        f"path={str(folder)!r} cannot be read as a model ({first}); give a folder that save_pretrained wrote."
    )
