r"""How much a rebuilt record says about the class it was rebuilt from: plain functions of embeddings.

The three published measures (cosine similarity, class-wise Frechet feature distance, Top-1 hit) compare with the
class mean, never with a record; the floors here say what each is without any skill.

Shapes: N vectors, C classes, d embedding width.
Source of the measures: VPDR, attack tables; vpdr.md, section 6.2, has their definitions.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from accountant import check
from attacks.statistics.binomial import clopper_pearson
from attacks.statistics.estimate import Estimate
from privkit.clip import unit


def cosines(a_Nd: Float[np.ndarray, "N d"], b_Nd: Float[np.ndarray, "N d"]) -> Float[np.ndarray, " N"]:
    """Return the cosine of each pair of rows, in [-1, 1]; 0 where one of the two is zero.

    >>> cosines(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])).round(3)
    array([0.707, 0.   ])
    """
    return (unit(a_Nd) * unit(b_Nd)).sum(1)


def centred_cosines(
    a_Nd: Float[np.ndarray, "N d"], b_Nd: Float[np.ndarray, "N d"], *, centre_d: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " N"]:
    """Return the cosines after a common vector is taken from both sides; 0 on average without skill.

    Embeddings share a large component, which makes the plain cosine of anything with anything high.

    Args:
        a_Nd: rebuilt embeddings.
        b_Nd: class means.
        centre_d: the client's grand mean, the mean of its class means.
    """
    return cosines(a_Nd - centre_d, b_Nd - centre_d)


def class_means(
    z_Nd: Float[np.ndarray, "N d"], labels_N: Int[np.ndarray, " N"]
) -> tuple[Int[np.ndarray, " C"], Float[np.ndarray, "C d"]]:
    """Return the classes there are, ascending, and the float64 mean of each."""
    labels = np.unique(labels_N)
    return labels, np.array([z_Nd[labels_N == c].mean(0, dtype=np.float64) for c in labels])


def between_classes(means_Cd: Float[np.ndarray, "C d"]) -> Float[np.ndarray, " C"]:
    """Return, for each class mean, its mean cosine to the others: the floor that the data give the cosine.

    Raises:
        ValueError: there is no other class.

    >>> between_classes(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).round(3)
    array([0.354, 0.354, 0.707])
    """
    if len(means_Cd) < 2:
        raise ValueError(f"{len(means_Cd)} class means have no cosine between classes; give at least 2.")
    directions = unit(means_Cd)
    return (directions @ directions.sum(0) - (directions**2).sum(1)) / (len(means_Cd) - 1)


def hits(
    z_Nd: Float[np.ndarray, "N d"], means_Cd: Float[np.ndarray, "C d"], own_N: Int[np.ndarray, " N"]
) -> Bool[np.ndarray, " N"]:
    """Return whether the nearest class mean of each vector, by cosine, is its own; a tie is no hit.

    Args:
        z_Nd: rebuilt embeddings, or released vectors.
        means_Cd: clean means of all classes of the same client.
        own_N: row of each vector's own class in ``means_Cd``.

    >>> hits(np.array([[1.0, 0.1], [0.0, 0.0]]), np.eye(2), np.array([0, 1]))
    array([ True, False])
    """
    cosine_NC = unit(z_Nd) @ unit(means_Cd).T
    rows = np.arange(len(z_Nd))
    own = cosine_NC[rows, own_N]
    cosine_NC[rows, own_N] = -np.inf
    return own > cosine_NC.max(1)


def top1(hits_N: Bool[np.ndarray, " N"], *, classes: int, level: float = 0.95) -> Estimate:
    """Return the share of hits with its Clopper-Pearson interval, chance and p-value.

    The interval and the p-value take targets for independent.

    Args:
        hits_N: whether each target hit its own class.
        classes: classes to choose from, at least 2; chance is one in so many.
        level: confidence level, in (0, 1).

    Returns:
        The estimate; targets stand under ``n_members``. No value where there is no target.

    >>> found = top1(np.array([True, True, False]), classes=10)
    >>> round(found.value, 3), found.null, round(found.p_value, 3)
    (0.667, 0.1, 0.028)
    """
    check.count(classes=classes)
    n, k, chance = len(hits_N), int(hits_N.sum()), 1 / classes
    if not n:
        return Estimate.missing("no targets", n_members=0, n_non_members=0, null=chance)
    low, high = clopper_pearson(k, n, level=level)
    return Estimate(
        value=k / n,
        low=low,
        high=high,
        level=level,
        kind="Clopper-Pearson, targets taken for independent",
        n_members=n,
        n_non_members=0,
        null=chance,
        p_value=float(special.betainc(k, n - k + 1, chance)) if k else 1.0,
    )


def frechet(
    mean_d: Float[np.ndarray, " d"],
    covariance_dd: Float[np.ndarray, "d d"],
    other_mean_d: Float[np.ndarray, " d"],
    other_covariance_dd: Float[np.ndarray, "d d"],
) -> float:
    r"""Return the squared Frechet distance of two Gaussians, at least 0, in squared units of the embedding.

    .. math:: \|m - m'\|^2 + \mathrm{Tr}(S + S' - 2 (S S')^{1/2})

    ``(S S')^{1/2}`` has the trace of ``(R S' R)^{1/2}`` with R the symmetric root of S, which is symmetric too.

    Args:
        mean_d: of one.
        covariance_dd: of the same; symmetric, without negative eigenvalues.
        other_mean_d: of the other.
        other_covariance_dd: of the same.

    Source: Dowson and Landau (1982), "The Frechet distance between multivariate normal distributions", Eq. 4.
    """
    values, vectors = np.linalg.eigh(covariance_dd)
    root_dd = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    shared = np.linalg.eigvalsh(root_dd @ other_covariance_dd @ root_dd)
    traces = np.trace(covariance_dd) + np.trace(other_covariance_dd)
    found = ((mean_d - other_mean_d) ** 2).sum() + traces - 2 * np.sqrt(np.maximum(shared, 0.0)).sum()
    return float(max(0.0, found))


def frechet_of(rebuilt_Kd: Float[np.ndarray, "K d"], real_Nd: Float[np.ndarray, "N d"]) -> float:
    """Return the Frechet distance of one class's rebuilt embeddings to its real ones; cFFD is its mean over classes.

    One rebuilt embedding has no spread: the distance is then ``|z - mean|^2 + Tr S``.

    >>> frechet_of(np.array([[3.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]]))
    11.0
    """
    return frechet(
        rebuilt_Kd.mean(0), covariance(rebuilt_Kd), real_Nd.mean(0, dtype=np.float64), covariance(real_Nd)
    )


def covariance(z_Nd: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "d d"]:
    """Return the sample covariance (divisor N - 1); zeros for a single vector."""
    centred_Nd = z_Nd - z_Nd.mean(0, dtype=np.float64)
    return centred_Nd.T @ centred_Nd / max(1, len(z_Nd) - 1)
