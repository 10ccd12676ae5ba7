"""Consecutive sentences of one editorial, put together again from VADER's file."""

from collections.abc import Iterator

from privkit.data._valence import Rated, rated
from privkit.errors import InputError


def passages(content: bytes, *, sentences: int, where: str) -> Iterator[Rated]:
    """Yield texts of so many consecutive sentences, none of which is in two of them, with their mean rating.

    Args:
        content: the file: per line the number of an editorial, ``_`` and that of a sentence; a rating; a sentence.
        sentences: per text; what is left over at an editorial's end is left out.
        where: the file's name, for messages.

    Raises:
        InputError: it is no UTF-8, or a line is not as above.
    """
    known = rated(content, where=where)
    lines = [line for line in content.decode("utf-8").split("\n") if line.strip()]
    held: list[Rated] = []
    before = ""
    for line, sentence in zip(lines, known, strict=True):
        editorial, mark, _ = line.partition("\t")[0].partition("_")
        if not mark:
            raise InputError(f"{where}: {line[:30]!r} names no editorial, as 12_3 does; get it again.")
        held = [*held, sentence] if editorial == before else [sentence]
        before = editorial
        if len(held) == sentences:
            yield Rated(" ".join(one.text for one in held), sum(one.rating for one in held) / sentences)
            held = []
