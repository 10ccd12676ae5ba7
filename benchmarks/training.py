"""Rows P1 to P6 and P21: rounds of training, evaluation, releases, and how they grow.

Ours is the engine that ``privkit train`` uses. Peers, in ``training_peers/``, follow the structure of other code; none
of it is copied. Both sides start from the same parameters, see the same batches, and use AdamW; peers have torch's, at
its defaults.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import release_pairs, scaling
from benchmarks.federation import Engine, Federation, farthest
from benchmarks.pairs import Pair, Work
from benchmarks.protocol import Result
from privkit.defenses._distillation import ClippingRegularization
from privkit.methods._base import LocalTraining
from privkit.methods.fedproto import FedProto
from privkit.methods.local_only import LocalOnly
from privkit.personal import PersonalModel

_row = partial(Pair, module="benchmarks.training")

# ---------------------------------------------------------------------- P1, P2: FedProto as in PFLlib

SMALL_BATCHES = LocalTraining(epochs=1, batch_size=32)
AS_PFLLIB = LocalTraining(epochs=1, batch_size=32, optimizer="sgd", learning_rate=0.005, weight_decay=0.0)
"""PFLlib's own optimiser and step size."""


def twenty(num_classes: int) -> Federation:
    """Return 20 clients with 500 records each, 512 features, adapters of width 64."""
    return Federation.of(
        [500] * 20, dim=512, num_classes=num_classes, model=PersonalModel(adapter=64), tests=2500
    )


def fedproto(given: Federation, *, test: bool = False) -> Work:
    method = FedProto(training=AS_PFLLIB, pull=1.0, predict="prototype")
    return partial(Engine(given, method).round, test=test)


def pfllib(given: Federation, *, test: bool = False) -> Work:
    from benchmarks.training_peers import pfllib_evaluation, pfllib_round

    server = pfllib_round.ProtoServer(given, AS_PFLLIB, 1.0)

    def round() -> list[float]:
        server.round()
        return pfllib_evaluation.accuracies(server) if test else []

    return round


def same_prototypes(num_classes: int, *, test: bool = False) -> tuple[str, bool]:
    """Compare global prototypes after two rounds, and every client's accuracy."""
    from benchmarks.training_peers import pfllib_evaluation, pfllib_round

    given = twenty(num_classes)
    ours = Engine(given, FedProto(training=AS_PFLLIB, pull=1.0, predict="prototype"))
    theirs = pfllib_round.ProtoServer(given, AS_PFLLIB, 1.0)
    ours.round()
    theirs.round()
    accuracies = ours.round(test=test)
    theirs.round()
    stacked = np.stack([theirs.prototypes[c].numpy() for c in range(num_classes)])
    apart = float(np.abs(ours.state["prototypes"] - stacked).max())
    said, void = f"prototypes {apart:.0e} apart, 1e-05 allowed", not apart <= 1e-5
    if test:
        same = accuracies == pfllib_evaluation.accuracies(theirs)
        said, void = f"{said}; accuracies {'equal' if same else 'differ'}", void or not same
    return said, void


# ---------------------------------------------------------------------- P3: many small clients


def hundred() -> Federation:
    return Federation.of([100] * 100, dim=64, num_classes=10, model=PersonalModel(adapter=16))


TINY_BATCHES = LocalTraining(epochs=1, batch_size=10)


def small_clients(given: Federation) -> Engine:
    return Engine(given, FedProto(training=TINY_BATCHES, pull=1.0))


def tidy_loop(given: Federation) -> Any:
    from benchmarks.training_peers.module_loop import TidyServer

    return TidyServer(given, TINY_BATCHES, 1.0)


def small_training() -> Work:
    """Return local training on the answers of the first exchange."""
    engine = small_clients(hundred())
    return partial(engine.train, engine.exchange())


def tidy_training() -> Work:
    server = tidy_loop(hundred())
    return partial(server.train, *server.exchange())


# ---------------------------------------------------------------------- P4: ragged clients


def ragged() -> Federation:
    """Return 100 clients with log-normal numbers of records: 100 on average, the largest 13 times as many."""
    drawn = np.random.default_rng(1).lognormal(0.0, 1.5, 100)
    sizes = np.maximum(4, np.round(100 * drawn / drawn.mean())).astype(int)
    return Federation.of(sizes.tolist(), dim=512, num_classes=10, model=PersonalModel(adapter=64))


def prefix(given: Federation) -> Engine:
    return Engine(given, LocalOnly(training=SMALL_BATCHES))


def padded(given: Federation) -> Any:
    from benchmarks.training_peers.padded_vmap import Padded

    return Padded(given, SMALL_BATCHES)


# ---------------------------------------------------------------------- P5: VPDR's local training

DCR = ClippingRegularization(radius=20.0, scaled=True, clamped=True, warm_up=5)
"""DCR with the choices of the published code."""


def four() -> Federation:
    """Return VPDR's four clients, with a hidden layer in the head."""
    return Federation.of([625] * 4, dim=512, num_classes=7, model=PersonalModel(adapter=64, hidden=(512,)))


def twenty_deep() -> Federation:
    """Return 20 clients with 500 records each, with the same head."""
    return Federation.of([500] * 20, dim=512, num_classes=10, model=PersonalModel(adapter=64, hidden=(512,)))


def vpdr(given: Federation, *, batch_size: int, rule: ClippingRegularization | None) -> Engine:
    training = LocalTraining(epochs=2, batch_size=batch_size)
    method = FedProto(training=training, pull=0.1, mse="broadcast_as_published", weights="published")
    return Engine(given, method, rule=rule)


def vpdr_peer(given: Federation, *, batch_size: int, rule: ClippingRegularization | None) -> Any:
    from benchmarks.training_peers.vpdr_training import VpdrServer

    return VpdrServer(given, LocalTraining(epochs=2, batch_size=batch_size), 0.1, rule)


def same_parameters(given: Federation, ours: Any, theirs: Any, *, allowed: float) -> tuple[str, bool]:
    """Compare all clients' parameters after two rounds in float64, where rounding does not hide a difference."""
    exact = given.double()
    mine, other = ours(exact), theirs(exact)
    for _ in range(2):
        mine.round()
        other.round()
    apart = farthest(mine.named(), other.named())
    return f"parameters {apart:.0e} apart, {allowed:.0e} allowed", not apart <= allowed


def _parameters_row(given: Any, ours: Any, theirs: Any, *, allowed: float, **row: Any) -> Pair:
    return _row(
        ours=lambda: ours(given()).round,
        theirs=lambda: theirs(given()).round,
        check=lambda: same_parameters(given(), ours, theirs, allowed=allowed),
        **row,
    )


_ROWS = [
    _row(
        id="P1",
        workload="FedProto round, 20 clients, C = 10",
        peer="PFLlib's structure",
        ours=lambda: fedproto(twenty(10)),
        theirs=lambda: pfllib(twenty(10)),
        check=lambda: same_prototypes(10),
        must=2.0,
        stretch=5.0,
    ),
    _row(
        id="P2",
        workload="the same and a test, C = 100",
        peer="PFLlib's structure",
        ours=lambda: fedproto(twenty(100), test=True),
        theirs=lambda: pfllib(twenty(100), test=True),
        check=lambda: same_prototypes(100, test=True),
        must=20.0,
        stretch=40.0,
        turns=3,
    ),
    _row(
        id="P3",
        workload="local training, 100 small clients",
        peer="tidy loop over modules",
        ours=small_training,
        theirs=tidy_training,
        check=lambda: same_parameters(hundred(), small_clients, tidy_loop, allowed=1e-6),
        must=30.0,
        stretch=60.0,
        loops=3,
    ),
    _parameters_row(
        hundred,
        small_clients,
        tidy_loop,
        allowed=1e-6,
        id="P3",
        workload="the same with release and merge",
        peer="tidy loop over modules",
        must=12.0,
        stretch=20.0,
        loops=3,
    ),
    _parameters_row(
        ragged,
        prefix,
        padded,
        allowed=1e-6,
        id="P4",
        workload="local round, 100 ragged clients",
        peer="padded vmap",
        must=10.0,
        stretch=15.0,
        turns=3,
    ),
    _parameters_row(
        four,
        partial(vpdr, batch_size=256, rule=None),
        partial(vpdr_peer, batch_size=256, rule=None),
        allowed=1e-7,
        id="P5",
        workload="VPDR round, B = 256, published MSE",
        peer="VPDR's structure",
        must=14.0,
        stretch=25.0,
        turns=3,
    ),
    *(
        _parameters_row(
            given,
            partial(vpdr, batch_size=32, rule=DCR),
            partial(vpdr_peer, batch_size=32, rule=DCR),
            allowed=1e-7,
            id="P5b",
            workload=f"VPDR round with DCR, B = 32, {clients} clients",
            peer="VPDR's structure",
            must=2.0,
            stretch=4.0,
        )
        for given, clients in ((twenty_deep, "20"), (four, "4"))
    ),
    *release_pairs.ROWS,
]

PAIRS = {pair.key: pair for pair in _ROWS}


def pair(key: str) -> list[Result]:
    return PAIRS[key].results()


ROWS = [*(partial(pair, key) for key in PAIRS), *scaling.ROWS]
