"""Options whose value is a list of names with commas between."""

from collections.abc import Sequence

from privkit.errors import InputError


def names(texts: Sequence[str], *, option: str, kind: str) -> list[str]:
    """Return the names in all values of an option, in their order, without the blanks around them.

    Args:
        texts: one per time that the option was given; none gives no names.
        option: as it is written.
        kind: what is named, in the singular.

    Raises:
        InputError: a value names nothing.

    >>> names(["cosine, distance", "tracing"], option="--attacks", kind="attack")
    ['cosine', 'distance', 'tracing']
    """
    found = [[name for part in text.split(",") if (name := part.strip())] for text in texts]
    empty = next((text for text, named in zip(texts, found, strict=True) if not named), None)
    if empty is not None:
        raise InputError(
            f"{option} {empty!r} names no {kind}; give names with commas between, or leave it out."
        )
    return [name for named in found for name in named]
