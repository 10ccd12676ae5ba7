"""Lower limits on epsilon: how much a mechanism is shown to leak, one method per file.

A certificate is only as true as its assumptions, which it carries in words.
"""

from attacks.statistics.certify.bayesian import epsilon_bayesian as epsilon_bayesian
from attacks.statistics.certify.certificate import Certificate as Certificate
from attacks.statistics.certify.certificate import NoCertificate as NoCertificate
from attacks.statistics.certify.clopper_pearson import epsilon_clopper_pearson as epsilon_clopper_pearson
from attacks.statistics.certify.gdp import epsilon_gdp as epsilon_gdp
from attacks.statistics.certify.one_run import epsilon_one_run as epsilon_one_run
from attacks.statistics.certify.one_run import one_run_p_value as one_run_p_value
from attacks.statistics.certify.one_run_fdp import epsilon_one_run_fdp as epsilon_one_run_fdp
from attacks.statistics.certify.parametric import epsilon_parametric as epsilon_parametric
