"""Small classifiers and regressors, and the slow twins of what they answer."""

import naive
import numpy as np
from small_forests import as_naive, bags, example

from dforest.estimators.classifiers import ForestClassifier
from dforest.estimators.regressors import ForestRegressor

KINDS = ("indicator", "half_squared", "absolute")
LEAF_ROWS = ("in_bag", "out_of_bag", "all")


def voting(kind="indicator", **changes):
    """Unfitted forest of a few small trees that predict."""
    options = {"n_estimators": 5, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
    made = ForestClassifier if kind == "indicator" else ForestRegressor
    return made(distance=kind, **(options | changes))


def responses(kind, X):
    """What `fit` takes as y."""
    return example(kind, X)[0]


def numbers(kind, X):
    """The same as numbers: classes one-hot (n, K), others as they are."""
    y = responses(kind, X)
    return (y[:, None] == np.unique(y)).astype(float) if kind == "indicator" else y


def told(forest, X):
    """What a forest predicts for X as (a, q)."""
    made = forest.predict_proba if hasattr(forest, "predict_proba") else forest.predict
    return made(X).reshape(len(X), -1)


def told_outside(forest):
    """What it predicts for its own rows out of bag, (n, q)."""
    found = forest.oob_proba() if hasattr(forest, "oob_proba") else forest.oob_predict()
    return found.reshape(len(found), -1)


def voters(forest):
    """How often each row votes in each tree, (T, n)."""
    drawn = bags(forest)
    return {"in_bag": drawn, "out_of_bag": drawn == 0, "all": np.ones(drawn.shape)}[
        forest.leaf_rows
    ]


def slow_told(forest, kind, X, XA):
    """Slow twin of `told`, for a forest fitted on X."""
    trees = [as_naive(tree) for tree in forest._forest.trees]
    given = trees, X, voters(forest), numbers(kind, X)
    return np.array([naive.forest_vote(*given, x, kind, forest.weighting) for x in XA])


def slow_told_outside(forest, kind, X):
    """Slow twin of `told_outside`; NaN where no tree may tell."""
    trees, drawn = [as_naive(tree) for tree in forest._forest.trees], bags(forest)
    votes, y, found = voters(forest), numbers(kind, X), []
    for i, x in enumerate(X):
        outside = np.flatnonzero(drawn[:, i] == 0)
        if not len(outside):
            found.append(np.full(y[0].size, np.nan))
            continue
        given = [trees[t] for t in outside], X, votes[outside], y
        found.append(naive.forest_vote(*given, x, kind, forest.weighting, leave_out=i))
    return np.array(found)
