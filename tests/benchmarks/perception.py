"""Human ratings of dissimilarity: predict those of items that were left out.

A quarter of the items is left out at a time, in several random partitions; a method sees the rating
of every pair of the others. Errors are over pairs of a left-out and a seen item, and over pairs of
two left-out ones. Self pairs are never judged. Settings were chosen by principle, not by error.
"""

import numpy as np
from scipy.optimize import nnls

import dforest as df
from benchmarks.data import Items, found, made_up_ratings, ratings
from benchmarks.harness import Row


def constant(X, Z):
    """The mean rating."""
    mean = Z[np.triu_indices(len(Z), 1)].mean()
    return lambda XA, XB: np.full((len(XA), len(XB)), mean)


def mahalanobis(X, Z):
    """z^2 = c + (x - x')^T M (x - x'), by nonnegative least squares.

    M is a nonnegative mixture of u u^T over the directions u = e_a, e_a + e_b, e_a - e_b of the
    standardised features, hence positive semidefinite: a true Mahalanobis distance. The constant
    is the squared rating of different items that look alike. Predictions are square roots.
    """
    fit = _nonnegative(X, Z**2, lambda along: along**2)
    return lambda XA, XB: np.sqrt(fit(XA, XB))


def city_block(X, Z):
    """z = c + sum over the same directions u of m_u |u^T (x - x')|, by nonnegative least squares.

    The linear model of z itself, where `mahalanobis` is one of z^2: it loses nothing to a square
    root, and ratings tend to be nearer to city-block distances.
    """
    return _nonnegative(X, Z, abs)


def _nonnegative(X, target, shape):
    p, scale = X.shape[1], X.std(axis=0) + 1e-12
    unit = np.eye(p)
    both = [unit[a] + s * unit[b] for a in range(p) for b in range(a) for s in (1, -1)]
    directions = np.column_stack([*unit, *both]) / scale[:, None]

    def design(XA, XB):
        along = (XA[:, None] - XB) @ directions
        return np.concatenate([np.ones((*along.shape[:2], 1)), shape(along)], axis=2)

    pairs = np.triu_indices(len(X), 1)
    weights, _ = nnls(design(X, X)[pairs], target[pairs])
    return lambda XA, XB: design(XA, XB) @ weights


def forest(X, Z, projections="axis"):
    """A distance forest for few items: every feature is searched, down to leaves of one item.

    Self pairs stay out of the leaves, as they are never judged.
    """
    model = df.DistanceForest(
        n_estimators=300,
        max_features=None,
        min_samples_leaf=1,
        projections=projections,
        self_pairs=False,
        random_state=0,
    )
    return model.fit(X, Z).pairwise


def oblique(X, Z):
    """The same, splitting on sums and differences of features."""
    return forest(X, Z, "sparse")


BASELINES = {"constant": constant, "mahalanobis": mahalanobis, "city block": city_block}
FORESTS = {"DistanceForest": forest, "oblique": oblique}


def left_out(items: Items, learn, n_partitions: int, seed: int = 0):
    """(truth, prediction) (2, pairs): of left-out with seen items, and of left-out ones."""
    rng, mixed, unseen = np.random.default_rng(seed), [], []
    for _ in range(n_partitions):
        for test in np.array_split(rng.permutation(len(items.X)), 4):
            train = np.setdiff1d(np.arange(len(items.X)), test)
            predict = learn(items.X[train], items.Z[np.ix_(train, train)])
            guess = predict(items.X[test], items.X[train])
            mixed.append((items.Z[np.ix_(test, train)].ravel(), guess.ravel()))
            guess, pairs = predict(items.X[test], items.X[test]), np.triu_indices(len(test), 1)
            unseen.append((items.Z[np.ix_(test, test)][pairs], guess[pairs]))
    return np.hstack(mixed), np.hstack(unseen)


def compare(learners: dict, scale: str) -> list[Row]:
    """One row for each set of items and each way to learn; the constant mean first."""
    items, n_partitions = {"made up": made_up_ratings(16)}, 2
    if scale == "full" and found("perception"):
        items, n_partitions = {name: ratings(name) for name in ("rectangles", "morse")}, 10
    rows: list[Row] = []
    for name, thing in items.items():
        floor = None
        for method, learn in learners.items():
            (z, guess), (z_unseen, guess_unseen) = left_out(thing, learn, n_partitions)
            error = abs(guess - z).mean()
            floor = error if floor is None else floor
            rows.append({
                "ratio MAE/constant": error / floor,
                "items": name,
                "method": method,
                "MAE": error,
                "R2": 1 - ((guess - z) ** 2).sum() / ((z - z.mean()) ** 2).sum(),
                "MAE of two unseen": abs(guess_unseen - z_unseen).mean(),
            })  # fmt: skip
    return rows


def run(scale: str) -> list[Row]:
    return compare(BASELINES | FORESTS, scale)
