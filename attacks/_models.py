"""The models that a view shows: weights that clients sent, or those an insider holds, as functions of features."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from attacks._base import NotApplicableError
from attacks._known_noise import words
from privkit.release import ByClass, Head, Payload, Update
from privkit.transcript import InsiderView, ServerView

_KNOWN = re.compile(r"head\.(\d+\.)?(weight|bias)|adapter\.(down|up)")


@dataclass(frozen=True, eq=False)
class Model:
    """An adapter after the public encoder (or none) and a head of linear layers with ReLU between them.

    Nothing of it is left out at random and nothing is normalised: it has no other mode to be left in.

    Attributes:
        named: ``head.weight`` [d, C] and ``head.bias`` [C]; further layers ``head.1.weight`` and so on;
            ``adapter.down`` [d, r] and ``adapter.up`` [r, d].
    """

    named: Mapping[str, np.ndarray]

    def logits(self, vectors_Nd: Float[np.ndarray, "N d"]) -> Float64[np.ndarray, "N C"]:
        """Return the logits of some records from their vectors under the public encoder.

        Raises:
            NotApplicableError: the vectors are not as wide as what the model reads.
        """
        wide = self.named.get("adapter.down", self.named["head.weight"]).shape[0]
        if vectors_Nd.shape[1] != wide:
            raise NotApplicableError(
                f"the model reads {wide} numbers, and records have {vectors_Nd.shape[1]}; ask about features of the "
                "frozen encoder"
            )
        h = vectors_Nd.astype(np.float64)
        if "adapter.down" in self.named:
            h = h + np.maximum(h @ self._of("adapter.down"), 0.0) @ self._of("adapter.up")
        h = self._layer("head.", h)
        layer = 1
        while f"head.{layer}.weight" in self.named:
            h = self._layer(f"head.{layer}.", np.maximum(h, 0.0))
            layer += 1
        return h

    def _layer(self, prefix: str, h: Float64[np.ndarray, "N k"]) -> Float64[np.ndarray, "N l"]:
        found = h @ self._of(f"{prefix}weight")
        return found + self._of(f"{prefix}bias") if f"{prefix}bias" in self.named else found

    def _of(self, name: str) -> np.ndarray:
        return self.named[name].astype(np.float64)


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
        return [_read(view.personal[client])]
    sent = [release for release in view.releases if release.client == client]
    if not sent:
        raise NotApplicableError(f"client {client} sent no weights")
    begun = _same_for_all(view)
    read = {release.round: _read(release.payload) for release in sent}
    found = [model for round, model in read.items() if round not in begun]
    if not found:
        raise NotApplicableError("all clients sent the same weights: no record has gone into them yet")
    return found


def shows_models(view: ServerView) -> bool:
    """Return whether anybody sent weights."""
    return any(isinstance(release.payload, Head | Update) for release in view.releases)


def _same_for_all(view: ServerView) -> set[int]:
    """Return the rounds in which several clients sent weights, and all of them the same."""
    sent: dict[int, list[str]] = {}
    for release in view.releases:
        sent.setdefault(release.round, []).append(release.payload.digest())
    return {round for round, digests in sent.items() if len(digests) > 1 and len(set(digests)) == 1}


def _read(payload: Payload) -> Model:
    match payload:
        case Head(weights=weights):
            return Model({"head.weight": weights.T})
        case Update(means="weights", named=named):
            return _of_weights(named)
        case ByClass() | Update() | Payload():
            raise NotApplicableError(f"clients sent {words(payload)}, not trained weights")


def _of_weights(named: Mapping[str, np.ndarray]) -> Model:
    if any(name.startswith(("head.vectors", "transform.")) for name in named):
        raise NotApplicableError(
            "the head reads embeddings of length 1, perhaps behind a map of the client's own, and this attack knows "
            "plain heads"
        )
    odd = next((name for name in named if not _KNOWN.fullmatch(name)), None)
    if odd is not None or "head.weight" not in named:
        raise NotApplicableError(
            f"parameter {odd or next(iter(named))} is of no head after the public encoder; name them head.weight "
            "[d, C] and head.bias [C]"
        )
    return Model(named)
