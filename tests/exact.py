"""Privacy losses by mpmath, straight from their definitions: slow, and right to every digit asked for."""

import mpmath as mp

DIGITS = 50


def mills_ratio(x):
    """(1 - Phi(x)) / phi(x)."""
    with mp.workdps(DIGITS):
        return _cdf(-mp.mpf(x)) / mp.npdf(mp.mpf(x))


def log_cdf(x):
    """ln Phi(x)."""
    with mp.workdps(DIGITS + _near_one(x)):
        return mp.log(_cdf(mp.mpf(x)))


def log_delta(epsilon, mu):
    """ln delta of mu-GDP, as Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    with mp.workdps(DIGITS + _near_one(mu / 2 - epsilon / mu)):
        return mp.log(_delta(mp.mpf(epsilon), mp.mpf(mu)))


def log_delta_joint(epsilon, mu, pure):
    """ln delta of randomised responses next to mu-GDP, every outcome of every response by itself."""
    with mp.workdps(DIGITS):
        outcomes = [(mp.mpf(0), mp.mpf(1))]
        for eps_0, times in pure.items():
            p = 1 / (1 + mp.exp(-mp.mpf(eps_0)))
            outcomes = [
                (
                    loss + (2 * i - times) * mp.mpf(eps_0),
                    mass * mp.binomial(times, i) * p**i * (1 - p) ** (times - i),
                )
                for loss, mass in outcomes
                for i in range(times + 1)
            ]
        left = [(mp.mpf(epsilon) - loss, mass) for loss, mass in outcomes]
        if mu == 0:
            return mp.log(sum(mass * (1 - mp.exp(gap)) for gap, mass in left if gap < 0))
        return mp.log(sum(mass * _delta(gap, mp.mpf(mu)) for gap, mass in left))


def _delta(epsilon, mu):
    return _cdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * _cdf(-epsilon / mu - mu / 2)


def _cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _near_one(x):
    """How many digits 1 - Phi(x) needs before its first non-zero one."""
    return int(float(x) ** 2 / 4.6) + 2 if x > 0 else 0
