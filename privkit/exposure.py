"""What records put into the trained linear maps of a model, token by token: all that attacks on gradients read.

A map ``y = W x`` that is trained on some records gets the gradient ``sum_n sum_t slope_nt input_nt^T``. Who knows the
weights of a round can compute inputs and slopes of any record, and the gradient that it alone would give.

Shapes: N records, T tokens, d inputs and m outputs of a map, C classes, R rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from privkit.release import Update
from privkit.transcript import Records, ServerView


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """What some records put into one trained map at the weights of one round.

    Attributes:
        inputs: what the map reads, shape [N, T, d]; 0 where a record has no token.
        slopes: derivative of each record's own loss by what the map gives, shape [N, T, m]; 0 where it has no token.
        present: where there is a token, shape [N, T].
        pooled: place of the token whose embedding is classified (CLS, or the last one), shape [N].
    """

    inputs: Float32[np.ndarray, "N T d"]
    slopes: Float32[np.ndarray, "N T m"]
    present: Bool[np.ndarray, "N T"]
    pooled: Int64[np.ndarray, " N"]

    def gradients(self) -> Float32[np.ndarray, "N m d"]:
        """Return the gradient of each record's own loss by the map's weights."""
        return np.matmul(self.slopes.transpose(0, 2, 1), self.inputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class Exposure:
    """Some records' passes through the model at the weights of one round.

    Attributes:
        traces: of each trained map, by the name of its weights in an upload, in the order of the model.
        logits: shape [N, C].
        losses: of each record alone, shape [N].
    """

    traces: Mapping[str, Trace]
    logits: Float32[np.ndarray, "N C"]
    losses: Float64[np.ndarray, " N"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRecords(Records):
    """Records, each with the question whether it was in the batch of its client in a round.

    Attributes:
        rounds: which round each is asked about, shape [N].
    """

    rounds: Int64[np.ndarray, " N"]

    @property
    def shared(self) -> Int64[np.ndarray, " N"]:
        """Return the round of each: one upload is about all that are asked about in it."""
        return self.rounds

    def where(self, keep_N: np.ndarray) -> "BatchRecords":
        """Return the records that a mask or an index of shape [N] keeps."""
        return BatchRecords(
            vectors=self.vectors[keep_N],
            labels=self.labels[keep_N],
            clients=self.clients[keep_N],
            rounds=self.rounds[keep_N],
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClientRecords(Records):
    """Records, each with the question whether its client trains on it at all: in any round, in any batch."""

    @property
    def shared(self) -> Int64[np.ndarray, " N"]:
        """Return the same number for all: every upload of a client is about all of them."""
        return np.zeros(len(self), np.int64)

    def where(self, keep_N: np.ndarray) -> "ClientRecords":
        """Return the records that a mask or an index of shape [N] keeps."""
        return ClientRecords(
            vectors=self.vectors[keep_N], labels=self.labels[keep_N], clients=self.clients[keep_N]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class GradientView(ServerView):
    """What a server has that sent out a model and got gradients (or what can be made one) back.

    Attributes:
        batch_size: records behind one upload, of all its senders together, which the server knows.
        sizes: the same of each client whose uploads have another number behind them, such as one of few records.
        senders: clients whose messages one upload is the mean of, under secure aggregation.
        repeatable: whether passes are those that clients made, and not without their dropout, say.
        transport: numbers that uploads were sent in: ``fp32``, ``fp16``, ``bf16`` or ``int8``.
        clip: norm to which the gradient of a whole step was shortened, if it was longer; ``None``: it never was.
        asked: the candidates of each round that some are asked about, at its weights, in their order.
        public: the attacker's own records at the weights of the same rounds; empty when it owns none.
        losses: of each candidate at the weights of every round, and after the last one, shape [N, R + 1].
        weights: of each traced map that the server sent out, by round and name, shape [m, d]; a round that is not
            known is missing. Whoever adds a multiple of them to its gradient, as an L2 penalty does, is seen through.
    """

    batch_size: int
    sizes: Mapping[int, int] = field(default_factory=dict)
    senders: int = 1
    repeatable: bool = True
    transport: str = "fp32"
    clip: float | None = None
    asked: Mapping[int, Exposure] = field(default_factory=dict)
    public: Mapping[int, Exposure] = field(default_factory=dict)
    losses: Float64[np.ndarray, "N rounds"] = field(default_factory=lambda: np.zeros((0, 0)))
    weights: Mapping[int, Mapping[str, np.ndarray]] = field(default_factory=dict)

    def gradient(self, *, round: int, client: int) -> Mapping[str, np.ndarray]:
        """Return what one client sent in a round, by parameter, as a gradient up to a positive factor.

        Raises:
            KeyError: it sent nothing in that round.
            TypeError: it sent something else.
        """
        sent = next((r.payload for r in self.releases if (r.round, r.client) == (round, client)), None)
        if sent is None:
            raise KeyError((round, client))
        if not isinstance(sent, Update) or sent.means == "weights":
            raise TypeError(f"client {client} sent no gradient in round {round}")
        sign = {"gradient": 1.0, "delta": -1.0}[sent.means]
        return {name: sign * array for name, array in sent.named.items()}
