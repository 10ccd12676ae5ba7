"""DCR alone, over any release: it changes local training, and protects nothing by itself."""

from typing import Any, ClassVar

from pydantic import Field, field_serializer, field_validator

from privkit import plug
from privkit.defenses._base import AbstractReleaseDefense, Mechanism, Promise
from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses._local import AsPublished
from privkit.defenses.none import Nothing


class Dcr(AbstractReleaseDefense):
    """Distillation-guided clipping regularization of the VPDR paper, with the release of another defense."""

    citation: ClassVar[str] = "vpdr"

    release: AbstractReleaseDefense = Field(
        default_factory=Nothing, description="the defense that makes the message"
    )
    rule: ClippingRegularization = Field(default_factory=ClippingRegularization, description="the local rule")

    @field_validator("release", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        if isinstance(value, AbstractReleaseDefense):
            return value
        return plug.build("privkit.defenses", value)

    @field_validator("release")
    @classmethod
    def _one_rule(cls, release: AbstractReleaseDefense) -> AbstractReleaseDefense:
        if not isinstance(release.local, AsPublished):
            raise ValueError(  # noqa: TRY004 a wrong setting, not a wrong type
                f"{release.name} changes local training too, and only one defense can; give one that only releases"
            )
        return release

    @field_serializer("release")
    def _plain(self, release: AbstractReleaseDefense) -> dict[str, Any]:
        return release.settings()

    @property
    def promise(self) -> Promise | None:
        return self.release.promise

    @property
    def local(self) -> ClippingRegularization:
        return self.rule

    def mechanism(self, *, rounds: int) -> Mechanism:
        return self.release.mechanism(rounds=rounds)
