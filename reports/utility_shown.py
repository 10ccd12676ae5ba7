"""How accuracies read in the utility table: as shares, or in percent."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Formats shares.

    Attributes:
        percent: in percent.
        fine: with the digits that published numbers have.
    """

    percent: bool = False
    fine: bool = False

    @property
    def unit(self) -> str:
        """Return what a column's title says of its unit."""
        return ", %" if self.percent else ""

    def rate(self, value: float | None) -> str:
        """Return a share.

        >>> Shown().rate(0.51234), Shown(percent=True).rate(0.51234), Shown(fine=True).rate(None)
        ('0.512', '51.23', 'n/a')
        """
        return "n/a" if value is None else f"{self._scaled(value):.{self._digits}f}"

    def rate_or_blank(self, value: float | None) -> str:
        """Return a share, or nothing where there is none."""
        return "" if value is None else self.rate(value)

    def signed(self, value: float | None) -> str:
        """Return a difference with its sign.

        >>> Shown().signed(0.0123), Shown(percent=True).signed(-0.1), Shown().signed(-0.0001)
        ('+0.012', '-10.00', '+0.000')
        """
        return (
            "n/a" if value is None else f"{round(self._scaled(value), self._digits) + 0.0:+.{self._digits}f}"
        )

    def span(self, low: float | None, high: float | None, *, signed: bool = False) -> str:
        """Return an interval.

        >>> Shown().span(0.5, 0.55), Shown().span(-0.1, 0.2, signed=True), Shown().span(None, None)
        ('[0.500, 0.550]', '[-0.100, +0.200]', 'n/a')
        """
        show = self.signed if signed else self.rate
        return "n/a" if low is None or high is None else f"[{show(low)}, {show(high)}]"

    def beside(self, printed: Decimal | None, recomputed: float | None, *, agrees: bool) -> str:
        """Return a published number as printed, and what its cells give where that is something else.

        >>> Shown(percent=True).beside(Decimal("86.91"), 86.41, agrees=False)
        '86.91 (its cells give 86.41)'
        """
        if printed is None:
            return "n/a"
        text = self._printed(printed)
        if agrees or recomputed is None:
            return text
        return f"{text} (its cells give {self._printed(Decimal(str(round(recomputed, 2))))})"

    def _printed(self, percent: Decimal) -> str:
        return f"{percent:.2f}" if self.percent else f"{percent / 100:.4f}"

    @property
    def _digits(self) -> int:
        return 2 if self.percent else 3 + self.fine

    def _scaled(self, value: float) -> float:
        return 100 * value if self.percent else value
