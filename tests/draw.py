"""Hypothesis strategies for what clients hold and send; edge cases are in them on purpose."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, from_dtype
from hypothesis.strategies import DrawFn, SearchStrategy, composite

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    ClipSet,
    Composed,
    Event,
    ExponentialTopK,
    Gaussian,
    GaussianTopK,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    NonPrivate,
    PureDP,
    Repeated,
    TopK,
)
from privkit.embeddings import Embeddings
from privkit.release import Head, Moments, Payload, ProbabilisticPrototypes, Prototypes, SumsAndCounts, Update

multipliers = st.floats(1e-3, 1e3)


def numbers(dtype: np.dtype) -> SearchStrategy[float]:
    """Finite numbers of moderate size that a type can hold; 0, -0 and the smallest are among them."""
    return from_dtype(dtype, min_value=-1e3, max_value=1e3)


@composite
def matrices(draw: DrawFn, *, min_rows: int = 1, dtypes: tuple[type, ...] = (np.float32, np.float64)):
    """Matrices of a few rows: some equal to another, some zero, some ordinary."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = (draw(st.integers(min_rows, 6)), draw(st.integers(1, 5)))
    matrix = draw(arrays(dtype, shape, elements=numbers(dtype)))
    for row in range(1, len(matrix)):
        matrix[row] *= draw(st.sampled_from((0, 1, 1)))
        if draw(st.booleans()):
            matrix[row] = matrix[row - 1]
    return matrix


@composite
def prototypes(draw: DrawFn) -> Prototypes:
    """Prototypes with equal rows, rows of zeros, several of one class, with counts or without."""
    vectors = draw(matrices(min_rows=0))
    labels = draw(arrays(np.int64, len(vectors), elements=st.integers(0, 4)))
    counts = draw(st.none() | arrays(np.int64, len(vectors), elements=st.integers(1, 10**6)))
    return Prototypes(vectors=vectors, labels=labels, counts=counts)


@composite
def sums_and_counts(draw: DrawFn) -> SumsAndCounts:
    """Noisy sums with totals below 0 and of 0 among them."""
    sent = draw(prototypes())
    totals = draw(arrays(np.float64, len(sent.labels), elements=numbers(np.dtype(np.float64))))
    return SumsAndCounts(vectors=sent.vectors, labels=sent.labels, totals=totals)


@composite
def moments(draw: DrawFn) -> Moments:
    """Noisy sums of moments, squares and uncertainties there or not."""
    sent = draw(sums_and_counts())
    rows = arrays(np.float64, len(sent.labels), elements=numbers(np.dtype(np.float64)))
    squares = arrays(sent.vectors.dtype, sent.vectors.shape, elements=numbers(sent.vectors.dtype))
    return Moments(
        vectors=sent.vectors,
        labels=sent.labels,
        totals=sent.totals,
        squares=draw(st.none() | squares),
        epistemic=draw(st.none() | rows),
        aleatoric=draw(st.none() | rows),
        least=draw(st.sampled_from((1e-3, 1.0, 7.5))),
    )


@composite
def probabilistic_prototypes(draw: DrawFn) -> ProbabilisticPrototypes:
    """Gaussians, of spread 0 among them, uncertainties there or not."""
    sent = draw(prototypes())
    rows = arrays(np.float64, len(sent.labels), elements=st.floats(0, 3))
    spread = draw(arrays(sent.vectors.dtype, sent.vectors.shape, elements=numbers(sent.vectors.dtype)))
    return ProbabilisticPrototypes(
        vectors=sent.vectors,
        labels=sent.labels,
        spread=np.abs(spread),
        epistemic=draw(st.none() | rows),
        aleatoric=draw(st.none() | rows),
    )


@composite
def updates(draw: DrawFn) -> Update:
    """Model tensors of any shape, one without axes and one without elements among them."""
    shapes = st.sampled_from([(), (0,), (1,), (3,), (2, 3), (1, 0, 2), (2, 1, 2)])
    tensor = shapes.flatmap(lambda shape: arrays(np.float32, shape, elements=numbers(np.dtype(np.float32))))
    names = st.text("abc.:/é ", min_size=1, max_size=6)
    return Update(
        named=draw(st.dictionaries(names, tensor, min_size=1, max_size=4)),
        means=draw(st.sampled_from(("gradient", "delta", "weights"))),
    )


def payloads() -> SearchStrategy[Payload]:
    """Every kind of payload."""
    return st.one_of(
        prototypes(),
        sums_and_counts(),
        moments(),
        probabilistic_prototypes(),
        updates(),
        matrices().map(lambda weights: Head(weights=weights)),
    )


@composite
def embeddings(draw: DrawFn) -> Embeddings:
    """A client's records: sometimes one, sometimes all of one class, sometimes equal."""
    vectors = draw(matrices(dtypes=(np.float64,)))
    classes = draw(st.sampled_from((1, 2, 4)))
    labels = draw(arrays(np.int64, len(vectors), elements=st.integers(0, classes - 1)))
    return Embeddings(vectors=vectors, labels=labels, encoder=draw(st.sampled_from(list(DependsOn))))


def contracts() -> SearchStrategy[Contract]:
    """Contracts with every field declared or left open."""
    depends = st.none() | st.sampled_from(list(DependsOn))
    return st.builds(
        Contract,
        relation=st.sampled_from(list(Relation)),
        query=st.none() | st.sampled_from(list(Query)),
        unit=st.text(max_size=8),
        clip_norm=st.none() | multipliers,
        encoder=depends,
        assignment=depends,
        counts=st.none() | st.sampled_from(list(Counts)),
        hyperparameters=depends,
        fresh_noise=st.none() | st.booleans(),
        class_counts=st.lists(st.integers(1, 99), max_size=2).map(tuple),
    )


@composite
def selections(draw: DrawFn) -> TopK:
    """One-shot top-k with every kind of noise."""
    dim = draw(st.integers(2, 9))
    kind = draw(st.sampled_from((LaplaceTopK, ExponentialTopK, GumbelTopK, GaussianTopK)))
    return kind(
        k=draw(st.integers(1, dim - 1)),
        dim=dim,
        score_bound=1.0,
        scale=draw(multipliers),
        monotone=draw(st.booleans()),
        contract=draw(contracts()),
    )


def leaves() -> SearchStrategy[Event]:
    """Every kind of event that runs once."""
    groups = st.lists(multipliers, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Gaussian, noise_multiplier=multipliers, contract=contracts()),
        st.builds(
            GroupGaussian,
            noise_multipliers=groups,
            clip=st.sampled_from(list(ClipSet)),
            contract=contracts(),
        ),
        selections(),
        st.builds(PureDP, epsilon=multipliers, contract=contracts()),
        st.builds(ApproximateDP, epsilon=multipliers, delta=st.floats(1e-9, 0.5), contract=contracts()),
        st.builds(BoundedRange, eta=multipliers, contract=contracts()),
        st.builds(NonPrivate, reason=st.text(max_size=8), contract=contracts()),
    )


def events() -> SearchStrategy[Event]:
    """Events, nested a few levels deep."""
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.builds(Repeated, event=inner, count=st.integers(1, 9)),
            st.builds(Composed, events=st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=4,
    )
