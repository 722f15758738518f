"""Unknown distances: 40 % of the pairs are hidden, and told by trees grown on the others.

Euclidean distances of rows in the unit square. Hidden are pairs at random; all pairs of some groups
of rows, drawn at random; or of some parts of the square, where no pair like them is ever seen.
Correlations and errors are over hidden pairs, beside a forest that knows all; means over seeds.
"""

import numpy as np

import dforest as df
from benchmarks.harness import Row

SHARE = 0.4
N_ROWS = {"toy": 100, "full": 300}
SEEDS = {"toy": 1, "full": 5}


def at_random(X, rng):
    """Any pair may be hidden: (n, n) bool."""
    upper = np.triu(rng.random((len(X), len(X))) < SHARE, 1)
    return upper | upper.T


def _between(group, rng):
    """Hide all pairs of some groups."""
    n = group.max() + 1
    one, other = np.triu_indices(n)
    picked = rng.permutation(len(one))[: round(SHARE * len(one))]
    hidden = np.zeros((n, n), bool)
    hidden[one[picked], other[picked]] = True
    return (hidden | hidden.T)[np.ix_(group, group)] & ~np.eye(len(group), dtype=bool)


def groups(X, rng):
    """Pairs of ten groups of rows."""
    return _between(rng.permutation(len(X)) % 10, rng)


def parts(X, rng):
    """Pairs of the nine parts of a 3 x 3 grid."""
    cell = (3 * X).astype(int)
    return _between(3 * cell[:, 0] + cell[:, 1], rng)


HIDDEN = {"at random": at_random, "groups of rows": groups, "parts of the square": parts}


def compare(hide, n: int, seed: int) -> list[float]:
    """Correlation, error, correlation and error if all were known, share of what is hidden."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    Z = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    hidden, figures = hide(X, rng), []
    for z in (np.where(hidden, np.nan, Z), Z):
        guess = df.DistanceForest(random_state=seed).fit(X, z).pairwise(X)[hidden]
        figures += [np.corrcoef(guess, Z[hidden])[0, 1], abs(guess - Z[hidden]).mean()]
    return [*figures, hidden.mean()]


def run(scale: str) -> list[Row]:
    rows: list[Row] = []
    for name, hide in HIDDEN.items():
        found = [compare(hide, N_ROWS[scale], seed) for seed in range(SEEDS[scale])]
        r, error, r_known, error_known, share = map(float, np.mean(found, axis=0))
        rows.append({
            "hidden": name,
            "share": share,
            "correlation": r,
            "least": float(np.min(found, axis=0)[0]),
            "if known": r_known,
            "MAE": error,
            "MAE if known": error_known,
        })  # fmt: skip
    return rows
