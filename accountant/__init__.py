"""privkit's accountant: events, their contracts, and the (epsilon, delta) that they promise.

Importing this package loads the standard library only; what needs numpy, scipy or dp-accounting is loaded
when it is used (:mod:`accountant.joint`, :mod:`accountant.joint_curve`, :mod:`accountant.pld`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from accountant.assumptions import ASSUMPTIONS as ASSUMPTIONS
from accountant.assumptions import Assumption as Assumption
from accountant.claim import Bound as Bound
from accountant.claim import Claim as Claim
from accountant.claim import claim as claim
from accountant.claim import curve as curve
from accountant.contract import Contract as Contract
from accountant.contract import Counts as Counts
from accountant.contract import DependsOn as DependsOn
from accountant.contract import Relation as Relation
from accountant.events import Composed as Composed
from accountant.events import Event as Event
from accountant.events import Gaussian as Gaussian
from accountant.events import GroupGaussian as GroupGaussian
from accountant.events import Leaf as Leaf
from accountant.events import NonPrivate as NonPrivate
from accountant.events import PureDP as PureDP
from accountant.events import Repeated as Repeated
from accountant.events import UnsupportedEventError as UnsupportedEventError
from accountant.gaussian import delta_from_mu as delta_from_mu
from accountant.gaussian import epsilon_from_mu as epsilon_from_mu
from accountant.gaussian import log_delta_from_mu as log_delta_from_mu
from accountant.gaussian import mu_from_epsilon as mu_from_epsilon
from accountant.gaussian import mu_from_pure_epsilon as mu_from_pure_epsilon
from accountant.gaussian import mu_from_sigma as mu_from_sigma
from accountant.gaussian import sigma_from_epsilon as sigma_from_epsilon
from accountant.tradeoff import AbstractCurve as AbstractCurve
from accountant.tradeoff import ApproximateCurve as ApproximateCurve
from accountant.tradeoff import GaussianCurve as GaussianCurve
from accountant.tradeoff import NoPromise as NoPromise

if TYPE_CHECKING:
    from accountant import joint as joint
    from accountant import pld as pld
    from accountant.joint_curve import JointCurve as JointCurve

_MODULES = ("joint", "pld")


def __getattr__(name: str) -> Any:
    """Load the parts that need numpy, scipy or dp-accounting on first use (PEP 562)."""
    if name in _MODULES:
        return importlib.import_module(f"accountant.{name}")
    if name == "JointCurve":
        return importlib.import_module("accountant.joint_curve").JointCurve
    raise AttributeError(f"module 'accountant' has no attribute {name!r}")
