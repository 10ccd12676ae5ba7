"""What attacks on prototypes share: they are asked with the public encoder, or with the client's own."""

from pydantic import Field, field_validator

from attacks._base import AbstractAttack, ThreatModel, Tier, asked_in

_PUBLIC = "the public encoder"
_OWN = "the client's own encoder of the last release, which no server has: outside the claimed guarantee"


WITH_RECORDS = ThreatModel(
    who="honest-but-curious server",
    knows=(
        _PUBLIC,
        "clip norm, noise multiplier and record counts",
        "records of the same domain that no client holds",
    ),
    tier="shadow",
)
"""A server that knows the noise, and owns records of its own to estimate the population from."""


class PrototypeAttack(AbstractAttack):
    """Scores records by released prototypes, from their vectors under some encoder.

    With ``tier: client`` that is the encoder which made the last release, and only this release is looked at. It is
    what the published VPDR code is asked with, and an upper bound of what one release tells a server: where a private
    encoder is trained, it cannot embed a record as its client does.
    """

    tier: Tier | None = Field(
        default=None,
        validate_default=True,
        description="the attack's own, with the public encoder; or client, with the client's own of the last release",
    )

    @field_validator("tier")
    @classmethod
    def _own_or_client(cls, tier: Tier | None) -> Tier:
        return asked_in(tier, cls.threat.tier, "client")

    @property
    def assumed(self) -> ThreatModel:
        if self.tier == self.threat.tier:
            return self.threat
        rest = [known for known in self.threat.knows if known != _PUBLIC]
        return ThreatModel(who="insider with the client's own encoder", knows=(_OWN, *rest), tier="client")
