"""The models that a view shows: weights that clients sent, or those an insider holds, as functions of features."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Float64

from attacks._base import NotApplicableError
from attacks._known_noise import words
from privkit.release import ByClass, Head, Payload, Update
from privkit.transcript import InsiderView, ServerView, Setup

_KNOWN = re.compile(r"head\.(\d+\.)?(weight|bias)|head\.vectors|adapter\.(down|up)")
Vectors = Float[np.ndarray, "N d"]


@dataclass(frozen=True, eq=False)
class Model:
    """A map after the public encoder (or none), and a head: of linear layers with ReLU between them, or FedOT's.

    Nothing of it is left out at random: it has no other mode to be left in.

    Attributes:
        named: ``head.weight`` [d, C] and ``head.bias`` [C]; further layers ``head.1.weight`` and so on; or
            ``head.vectors`` [d, C], which reads embeddings of length 1. ``adapter.down`` [d, r] and ``adapter.up``
            [r, d], or the parameters of another map, where they are known: else the map counts as the identity.
        setup: what is public of it.
    """

    named: Mapping[str, np.ndarray]
    setup: Setup = field(default_factory=Setup)

    @property
    def unit(self) -> bool:
        """Return whether the head reads embeddings of length 1."""
        return "head.vectors" in self.named

    @property
    def layers(self) -> list[str]:
        """Return the names of the head's weights, first layer first."""
        first = "head.vectors" if self.unit else "head.weight"
        later = (f"head.{layer}.weight" for layer in itertools.count(1))
        return [first, *itertools.takewhile(lambda name: name in self.named, later)]

    def logits(self, vectors_Nd: Vectors) -> Float64[np.ndarray, "N C"]:
        """Return the logits of some records from their vectors under the public encoder.

        Raises:
            NotApplicableError: the vectors are not as wide as what the model reads.
        """
        return self.given(self.layers[-1], self.inputs(vectors_Nd)[-1])

    def inputs(self, vectors_Nd: Vectors) -> list[Float64[np.ndarray, "N k"]]:
        """Return what each of the head's layers reads of some records; embeddings of zeros stay zeros.

        Raises:
            NotApplicableError: see :meth:`logits`.
        """
        found = [self._embedded(vectors_Nd)]
        for name in self.layers[:-1]:
            found.append(np.maximum(self.given(name, found[-1]), 0.0))
        return found

    def given(self, name: str, inputs_Nk: Float64[np.ndarray, "N k"]) -> Float64[np.ndarray, "N l"]:
        """Return what a layer gives for what it reads."""
        given_Nl = inputs_Nk @ self._of(name)
        bias = name.removesuffix("weight") + "bias"
        return self.slope * (given_Nl + self._of(bias) if bias in self.named else given_Nl)

    @property
    def slope(self) -> float:
        """Return what the head multiplies its products by: its temperature, or 1."""
        return (self.setup.temperature or 1.0) if self.unit else 1.0

    def _embedded(self, vectors_Nd: Vectors) -> Float64[np.ndarray, "N d"]:
        wide = self.named.get("adapter.down", self.named[self.layers[0]]).shape[0]
        if vectors_Nd.shape[1] != wide:
            raise NotApplicableError(
                f"the model reads {wide} numbers, and records have {vectors_Nd.shape[1]}; ask about features of the "
                "frozen encoder"
            )
        h = vectors_Nd.astype(np.float64)
        if "adapter.down" in self.named:
            h = h + np.maximum(h @ self._of("adapter.down"), 0.0) @ self._of("adapter.up")
        own = _below(self.named, self.setup.parameters)
        if own and self.setup.mapped is not None:
            h = self.setup.mapped(own, h)
        return units(h) if self.unit else h

    def _of(self, name: str) -> np.ndarray:
        return self.named[name].astype(np.float64)


def units(vectors_Nd: Vectors) -> Float64[np.ndarray, "N d"]:
    """Return vectors of length 1; those of length 0 stay as they are, and what is not finite becomes no number."""
    wide_Nd = vectors_Nd.astype(np.float64)
    lengths_N1 = np.linalg.norm(wide_Nd, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.divide(wide_Nd, lengths_N1, out=np.zeros_like(wide_Nd), where=lengths_N1 != 0)


def models(view: ServerView, client: int) -> list[Model]:
    """Return the models of one client that a view shows, in the order of rounds.

    An insider's is the one personalised model. Of what was sent, a round in which all clients sent the same weights
    counts for nothing: they are those that training begins from.

    Raises:
        NotApplicableError: there is none, or it cannot be read.
    """
    if isinstance(view, InsiderView):
        if client not in view.personal:
            raise NotApplicableError(f"the run keeps no trained parameters of client {client}")
        return [read(view.personal[client], view.setup)]
    sent = [release for release in view.releases if release.client == client]
    if not sent:
        raise NotApplicableError(f"client {client} sent no weights")
    begun = _same_for_all(view)
    found = {release.round: read(release.payload, view.setup) for release in sent}
    trained = [model for round, model in found.items() if round not in begun]
    if not trained:
        raise NotApplicableError("all clients sent the same weights: no record has gone into them yet")
    return trained


def shows_models(view: ServerView) -> bool:
    """Return whether anybody sent weights."""
    return any(isinstance(release.payload, Head | Update) for release in view.releases)


def unsent(view: ServerView) -> str:
    """Return, in words, that what clients train before the head was not sent; nothing where it was, or is nothing."""
    setup = view.setup
    named = [r.payload.named for r in view.releases if isinstance(r.payload, Update)]
    if not setup.before or any(name.startswith(setup.parameters) for one in named for name in one):
        return ""
    return f"the client's {setup.before} is not sent; scored as if it were the identity"


def _same_for_all(view: ServerView) -> set[int]:
    """Return the rounds in which several clients sent weights, and all of them the same."""
    sent: dict[int, list[str]] = {}
    for release in view.releases:
        sent.setdefault(release.round, []).append(release.payload.digest())
    return {round for round, digests in sent.items() if len(digests) > 1 and len(set(digests)) == 1}


def read(payload: Payload, setup: Setup) -> Model:
    """Return the model that a message holds.

    Raises:
        NotApplicableError: it holds none that can be read.
    """
    match payload:
        case Head(weights=weights):
            return Model({"head.weight": weights.T})
        case Update(means="weights", named=named):
            return _of_weights(named, setup)
        case ByClass() | Update() | Payload():
            raise NotApplicableError(f"clients sent {words(payload)}, not trained weights")


def _of_weights(named: Mapping[str, np.ndarray], setup: Setup) -> Model:
    if "head.vectors" in named and setup.temperature is None:
        raise NotApplicableError(
            "the head reads embeddings of length 1, and at which temperature is not known; audit the run of a "
            "configuration that has model.temperature"
        )
    own = {n for n in named if setup.mapped is not None and n.startswith(setup.parameters)}
    odd = next((name for name in named if name not in own and not _KNOWN.fullmatch(name)), None)
    if odd is not None or not {"head.weight", "head.vectors"} & set(named):
        raise NotApplicableError(
            f"parameter {odd or next(iter(named))} is of no head after the public encoder; name them head.weight "
            "[d, C] and head.bias [C]"
        )
    return Model(named, setup)


def _below(named: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the entries whose names begin with a prefix, without it; nothing for none."""
    return {n.removeprefix(prefix): a for n, a in named.items() if prefix and n.startswith(prefix)}
