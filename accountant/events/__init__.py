"""What happened: one frozen value per kind of release.

An event documents a mechanism completely enough that an accountant needs nothing else. Classes are
never removed and their numbers never change meaning; new behaviour is a new class, with one registration
per accountant that can price it (:mod:`accountant.cost`, :mod:`accountant.renyi`).
Only :func:`counted` multiplies, so that no accountant can forget a count (dp-accounting's RDP accountant
once did).

=======================  ==========================================================================
value                    what happens
=======================  ==========================================================================
NaN, inf, 0 or less      refused wherever a noise level, an epsilon or a scale is wanted
True, "3", None          refused wherever a number is wanted
delta of an event        in (0, 1); refused elsewhere
count                    a whole number from 1 to 2^53; 0, 1.5 and sums and products beyond are refused
k of a selection         from 1 to dim - 1; refused elsewhere
sampling rate            in (0, 1]; 1 is the plain Gaussian mechanism; refused elsewhere
clip set                 one of three; one ball with unequal clip norms is refused
an empty composition     costs exactly nothing: epsilon 0
an unknown event         refused with its name, however deep it is inside others
=======================  ==========================================================================
"""

from accountant.events._base import Composed as Composed
from accountant.events._base import Event as Event
from accountant.events._base import Leaf as Leaf
from accountant.events._base import Repeated as Repeated
from accountant.events._base import UnsupportedEventError as UnsupportedEventError
from accountant.events._base import counted as counted
from accountant.events._base import leaves as leaves
from accountant.events._base import merged as merged
from accountant.events._plain import from_dict as from_dict
from accountant.events._plain import to_dict as to_dict
from accountant.events.gaussian import ClipSet as ClipSet
from accountant.events.gaussian import Gaussian as Gaussian
from accountant.events.gaussian import GroupGaussian as GroupGaussian
from accountant.events.generic import ApproximateDP as ApproximateDP
from accountant.events.generic import BoundedRange as BoundedRange
from accountant.events.generic import NonPrivate as NonPrivate
from accountant.events.generic import PureDP as PureDP
from accountant.events.subsampled import SubsampledGaussian as SubsampledGaussian
from accountant.events.topk import ExponentialTopK as ExponentialTopK
from accountant.events.topk import GaussianTopK as GaussianTopK
from accountant.events.topk import GumbelTopK as GumbelTopK
from accountant.events.topk import LaplaceTopK as LaplaceTopK
from accountant.events.topk import TopK as TopK
