r"""FSHA, the feature-space hijacking attack: a malicious server of split learning trains the client's encoder itself.

The server owns images :math:`X_{pub}` of the same kind as the client's and ignores the labels. It trains an encoder
:math:`\tilde f` and a decoder of its own, and a critic D that tells features of the two sides apart,

.. math::
    L_{\tilde f, dec} = \overline{(dec(\tilde f(X_{pub})) - X_{pub})^2}, \qquad
    L_D = \overline{D(f(X_{priv}))} - \overline{D(\tilde f(X_{pub}))} + \gamma\,
    \overline{(\lVert \nabla_u D(u) \rVert - 1)^2}

with u on the lines between features of both sides, and answers the client with the gradient of
:math:`-\overline{D(f(X_{priv}))}`: so the client's f is trained to give features that the server's decoder reads.

Source: Pasquini, Ateniese and Bernaschi (2021), "Unleashing the tiger: inference attacks on split learning", Eq. 1 to
3, with the Wasserstein critic and gradient penalty (Gulrajani et al., 2017) of its published notebook: there gamma 500,
Adam at 1e-5 (client), 1e-5 (encoder, decoder) and 1e-4 (critic), batches of 64 and 10,000 steps on deeper networks.
Ours: small networks, and the faster rates below, which a few thousand steps of them need.
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.plug import Plugin

if TYPE_CHECKING:
    from attacks.split._base import Public
    from attacks.split._fsha_server import FshaServer


class Fsha(Plugin):
    """Rebuilds a client's images after it has trained the client's encoder with gradients of its own."""

    citation: ClassVar[str] = "pasquini2021"
    who: ClassVar[str] = "malicious server of split learning"
    knows: ClassVar[tuple[str, ...]] = (
        "images of the same kind that no client holds",
        "the architecture of the client's layers, not their weights",
    )

    penalty: float = Field(default=100.0, ge=0, description="gamma, weight of the critic's gradient penalty")
    critic_rate: float = Field(default=1e-3, gt=0, description="Adam step size of the critic")
    own_rate: float = Field(
        default=1e-3, gt=0, description="Adam step size of the server's encoder and decoder"
    )

    def server(self, public: "Public", *, batch_size: int, seed: int) -> "FshaServer":
        """Return the server before the first message.

        Args:
            public: what it owns; labels are not looked at.
            batch_size: its images per step, as many as a client's batch holds.
            seed: of its initial weights and batches.
        """
        from attacks.split._fsha_server import FshaServer

        return FshaServer(self, public, batch_size=batch_size, seed=seed)
