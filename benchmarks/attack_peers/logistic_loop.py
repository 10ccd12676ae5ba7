"""Shadow models one after the other, each a logistic regression of scikit-learn with as many passes as ours.

Its stochastic solver is the one that makes passes over records. L-BFGS, its default, solves to the optimum: heads that
fit their records better than any that was trained for a while, so another model (LiRA's AUC .793 for .743).
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.shadows import EPOCHS, Given


def sklearn_logits(given: Given) -> np.ndarray:
    """Return the logits of all records under one linear head per shadow, shape [S, N, C]."""
    found = []
    for s, held in enumerate(given.held):
        # the bias is the constant feature, and the penalty is per record, as on our side
        strength = 1 / (held.sum() * given.decay)
        model = LogisticRegression(
            C=strength, fit_intercept=False, solver="sag", max_iter=EPOCHS, tol=0, random_state=s
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # so many passes are wanted, and no more
            model.fit(given.x[held], given.y[held])
        found.append(model.decision_function(given.x))
    return np.stack(found)
