"""privkit's accountant: events, their contracts, and the (epsilon, delta) that they promise.

Importing this package loads nothing else; every name is loaded from its module when it is first used
(PEP 562). Closed forms need the standard library only, :mod:`accountant.joint` numpy and scipy.special, and
only :mod:`accountant.pld` and the peers of :mod:`accountant.selfcheck` dp-accounting.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.accountants import Answer as Answer
    from accountant.accountants import answers as answers
    from accountant.accountants import smallest as smallest
    from accountant.assumptions import ASSUMPTIONS as ASSUMPTIONS
    from accountant.assumptions import Assumption as Assumption
    from accountant.beside import sigma_beside as sigma_beside
    from accountant.bound import Bound as Bound
    from accountant.budget import Budget as Budget
    from accountant.budget import BudgetExceededError as BudgetExceededError
    from accountant.claims import Claim as Claim
    from accountant.claims import claim as claim
    from accountant.claims import curve as curve
    from accountant.claims import under_relations as under_relations
    from accountant.consequences import Broken as Broken
    from accountant.contract import Contract as Contract
    from accountant.contract import Counts as Counts
    from accountant.contract import DependsOn as DependsOn
    from accountant.contract import Query as Query
    from accountant.contract import Relation as Relation
    from accountant.envelope_curve import EnvelopeCurve as EnvelopeCurve
    from accountant.events import ApproximateDP as ApproximateDP
    from accountant.events import BoundedRange as BoundedRange
    from accountant.events import ClipSet as ClipSet
    from accountant.events import Composed as Composed
    from accountant.events import Event as Event
    from accountant.events import ExponentialTopK as ExponentialTopK
    from accountant.events import Gaussian as Gaussian
    from accountant.events import GaussianTopK as GaussianTopK
    from accountant.events import GroupGaussian as GroupGaussian
    from accountant.events import GumbelTopK as GumbelTopK
    from accountant.events import LaplaceTopK as LaplaceTopK
    from accountant.events import Leaf as Leaf
    from accountant.events import NonPrivate as NonPrivate
    from accountant.events import PureDP as PureDP
    from accountant.events import Repeated as Repeated
    from accountant.events import SubsampledGaussian as SubsampledGaussian
    from accountant.events import UnsupportedEventError as UnsupportedEventError
    from accountant.gaussian import delta_from_mu as delta_from_mu
    from accountant.gaussian import epsilon_from_mu as epsilon_from_mu
    from accountant.gaussian import log_delta_from_mu as log_delta_from_mu
    from accountant.gaussian import mu_from_epsilon as mu_from_epsilon
    from accountant.gaussian import mu_from_pure_epsilon as mu_from_pure_epsilon
    from accountant.gaussian import mu_from_sigma as mu_from_sigma
    from accountant.gaussian import sigma_from_epsilon as sigma_from_epsilon
    from accountant.groupwise import Allocation as Allocation
    from accountant.joint_curve import JointCurve as JointCurve
    from accountant.relations import reach as reach
    from accountant.relations import restated as restated
    from accountant.selection import Fidelity as Fidelity
    from accountant.selection import fidelity as fidelity
    from accountant.tradeoff import AbstractCurve as AbstractCurve
    from accountant.tradeoff import ApproximateCurve as ApproximateCurve
    from accountant.tradeoff import GaussianCurve as GaussianCurve
    from accountant.tradeoff import LossyCurve as LossyCurve
    from accountant.tradeoff import LowestCurve as LowestCurve
    from accountant.tradeoff import NoPromise as NoPromise
    from accountant.vpp import SplitCalibration as SplitCalibration
    from accountant.vpp import sigma_ref as sigma_ref

_NAMES = {
    "accountants": "Answer answers smallest",
    "assumptions": "ASSUMPTIONS Assumption",
    "beside": "sigma_beside",
    "bound": "Bound",
    "budget": "Budget BudgetExceededError",
    "claims": "Claim claim curve under_relations",
    "consequences": "Broken",
    "contract": "Contract Counts DependsOn Query Relation",
    "envelope_curve": "EnvelopeCurve",
    "events": "ApproximateDP BoundedRange ClipSet Composed Event ExponentialTopK Gaussian "
    "GaussianTopK GroupGaussian GumbelTopK LaplaceTopK Leaf NonPrivate PureDP Repeated "
    "SubsampledGaussian UnsupportedEventError",
    "gaussian": "delta_from_mu epsilon_from_mu log_delta_from_mu mu_from_epsilon mu_from_pure_epsilon "
    "mu_from_sigma sigma_from_epsilon",
    "groupwise": "Allocation",
    "joint_curve": "JointCurve",
    "relations": "reach restated",
    "selection": "Fidelity fidelity",
    "tradeoff": "AbstractCurve ApproximateCurve GaussianCurve LossyCurve LowestCurve NoPromise",
    "vpp": "SplitCalibration sigma_ref",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'accountant' has no attribute {name!r}")
    return getattr(import_module(f"accountant.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_HOME)
