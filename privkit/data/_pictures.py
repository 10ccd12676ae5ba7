"""What every data set of pictures does with its domains: chooses, decodes, refuses."""

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64
from pydantic import Field

from privkit.data import _share, _unread
from privkit.data._base import Domain
from privkit.data._left_out import Unusable
from privkit.data._stored import AbstractStoredData
from privkit.data._unread import UnreadDomain
from privkit.errors import InputError


class AbstractPictureData(AbstractStoredData):
    """A data set of pictures in several domains, decoded to squares in colour."""

    side: int = Field(
        default=224,
        ge=1,
        le=2048,
        description="pixels; every picture is resized to side x side (proportions not kept)",
    )
    skip_bad: bool = Field(
        default=False,
        description="leave out pictures that cannot be used, and say how many; false: refuse them",
    )
    keep: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="share of each class's training pictures that is loaded, chosen by name; null: all",
    )
    test_share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="share of each class held out for testing, chosen by name, in a domain with no test part of its "
        "own; null: the run's split does that",
    )

    @abstractmethod
    def unread(self) -> Iterator[UnreadDomain]:
        """Yield the wanted domains, in order, before anything is decoded."""

    def load(self) -> tuple[Domain, ...]:
        """Return the domains as images, uint8 of shape [N, side, side, 3], always the same in the same order.

        Test parts of the data set are whole: ``keep`` does not touch them.

        Raises:
            InputError: files are missing, not those of the manifest or not as expected, a domain is empty, or
                pictures cannot be read and ``skip_bad`` is not set.
        """
        self.refuse_other_files()
        return tuple(self._read(domain) for domain in self.unread())

    def _read(self, domain: UnreadDomain) -> Domain:
        known = len(domain.wrong) + len(domain.records.names) + (len(domain.test.names) if domain.test else 0)
        self._refuse(Unusable(domain.name, known, domain.wrong, domain.absent))  # before anything is decoded
        chosen, held_out = self._rows(domain)
        test, wrong = None, dict(domain.wrong)
        if held_out is not None:
            test, unread = _unread.read(domain.test or domain.records, held_out, side=self.side)
            wrong |= unread
        kept, unread = _unread.read(domain.records, chosen, side=self.side)
        wrong |= unread
        wanted = len(domain.wrong) + len(chosen) + (0 if held_out is None else len(held_out))
        unusable = Unusable(domain.name, wanted, wrong, domain.absent)
        self._refuse(unusable)
        if not len(kept.labels) or (test is not None and not len(test.labels)):
            part = "test" if len(kept.labels) else "training"
            unused = f" ({len(wrong):,} cannot be used)" if wrong else ""
            raise InputError(
                f"domain {domain.name} has no {part} pictures{unused}; add some, or leave it out of domains."
            )
        return Domain(
            kept.records, kept.labels, domain.name, test, left_out=tuple(wrong), notes=unusable.notes
        )

    def _refuse(self, unusable: Unusable) -> None:
        if not self.skip_bad:
            unusable.refuse()

    def _rows(self, domain: UnreadDomain) -> tuple[Int64[np.ndarray, " N"], Int64[np.ndarray, " T"] | None]:
        """Return the rows to load, and those to test on; the latter of the domain's test part, if it has one."""
        labels, names = domain.records.labels, domain.records.names
        rows, held_out = np.arange(len(labels)), None
        if domain.test is not None:
            held_out = np.arange(len(domain.test.labels))
        elif self.test_share is not None:
            held_out = _share.of_each_class(labels, names, share=self.test_share, purpose="test", leave=1)
            rows = np.setdiff1d(rows, held_out)
        if self.keep is not None:
            named = tuple(names[row] for row in rows)
            rows = rows[_share.of_each_class(labels[rows], named, share=self.keep, purpose="keep")]
        return rows, held_out
