"""Sentences as token numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from privkit.errors import InputError

AT_ONCE = 64
"""Most sentences of one pass."""
TOKENS_AT_ONCE = 4096
"""Most tokens of one pass, what sentences are filled up with included; a longer sentence goes alone."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Tokenised sentences, filled up on the right.

    Attributes:
        ids: token numbers, shape [N, T].
        lengths: tokens of each sentence, at least 1, shape [N].
    """

    ids: Int64[np.ndarray, "N T"]
    lengths: Int64[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def present(self) -> Bool[np.ndarray, "N T"]:
        """Return where there is a token."""
        return np.arange(self.ids.shape[1]) < self.lengths[:, None]

    def take(self, rows: np.ndarray) -> "Texts":
        """Return some sentences, filled up to the longest of them."""
        lengths = self.lengths[rows]
        return Texts(self.ids[rows, : int(lengths.max(initial=1))], lengths)

    def groups(self) -> Iterator[np.ndarray]:
        """Yield the rows of sentences that pass through a model together: of about the same length."""
        order = np.argsort(self.lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = self.lengths[order[start : start + AT_ONCE]]
            fitting = int((longest * np.arange(1, len(longest) + 1) <= TOKENS_AT_ONCE).sum())
            end = start + max(1, fitting)
            yield order[start:end]
            start = end


def joined(parts: list[Texts]) -> Texts:
    """Return the sentences of all parts, one after the other."""
    widest = max(part.ids.shape[1] for part in parts)
    ids = [np.pad(part.ids, ((0, 0), (0, widest - part.ids.shape[1]))) for part in parts]
    return Texts(np.concatenate(ids), np.concatenate([part.lengths for part in parts]))


def tokenised(tokenizer: Any, sentences: np.ndarray, *, max_length: int) -> Texts:
    """Return sentences as the tokens of a model.

    A sentence of one token is one; a longer one than ``max_length`` tokens, special ones included, is cut there.

    Raises:
        InputError: the records are no sentences, or one has no token of its own.
    """
    if sentences.ndim != 1 or sentences.dtype.kind != "U":
        raise InputError(
            f"a transformer reads sentences, an array of str of shape [N], not {sentences.dtype} of "
            f"{list(sentences.shape)}; take data such as vader."
        )
    if not len(sentences):
        return Texts(np.zeros((0, 1), np.int64), np.zeros(0, np.int64))
    bare = tokenizer(sentences.tolist(), add_special_tokens=False)["input_ids"]
    empty = next((row for row, ids in enumerate(bare) if not ids), None)
    if empty is not None:
        raise InputError(
            f"sentence {empty} ({sentences[empty][:20]!r}) has no token; leave out records without text."
        )
    tokens = tokenizer(sentences.tolist(), truncation=True, max_length=max_length)["input_ids"]
    lengths = np.array([len(ids) for ids in tokens], np.int64)
    ids_NT = np.zeros((len(tokens), int(lengths.max())), np.int64)
    ids_NT[np.arange(ids_NT.shape[1]) < lengths[:, None]] = np.concatenate(tokens)
    return Texts(ids_NT, lengths)
