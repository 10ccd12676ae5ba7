"""What cannot be used of a domain, in one sentence: refused, or left out and said."""

from collections.abc import Iterable
from dataclasses import dataclass

from privkit.errors import InputError

NAMED = 3


@dataclass(frozen=True)
class Unusable:
    """What cannot be used of a domain.

    Attributes:
        domain: its name.
        total: images that were wanted.
        images: why some of them cannot be used, by name.
        entries: of lists, that name no picture that is there.
    """

    domain: str
    total: int
    images: dict[str, str]
    entries: tuple[str, ...] = ()

    def refuse(self) -> None:
        """Refuse the domain if something cannot be used.

        Raises:
            InputError: how much cannot be used; the first three of each kind are named.
        """
        if self.images or self.entries:
            raise InputError(
                f"{self._said('', '')}; replace or correct that, or set skip_bad: true to leave it out."
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the sentence that says what is left out, if something is."""
        if not self.images and not self.entries:
            return ()
        return (f"{self._said(' and are left out', ' and are passed over')}.",)

    def _said(self, images: str, entries: str) -> str:
        parts = []
        if self.images:
            shown = _first(f"{name}: {reason}" for name, reason in self.images.items())
            parts.append(f"{len(self.images):,} of {self.total:,} images cannot be used ({shown}){images}")
        if self.entries:
            shown = _first(self.entries)
            parts.append(
                f"{len(self.entries):,} in its lists name no picture that is there ({shown}){entries}"
            )
        return f"domain {self.domain}: {'; '.join(parts)}"


def _first(texts: Iterable[str]) -> str:
    found = list(texts)
    return "; ".join(found[:NAMED]) + ("; …" if len(found) > NAMED else "")
