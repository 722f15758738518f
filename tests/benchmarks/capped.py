"""`max_split_rows`: trees from searches of at most 500 rows, against exhaustive search.

Dense z in memory, the task of `benchmarks.synthetic`, 4 candidate features of 16, leaf 5; seconds
of one core, medians over seeds. Growing and tabulating a tree are told apart by what more trees
add to a fit, and to a refit of its leaves: a leaf table looks at every distance, however the tree
was grown. Errors are means over seeds, on pairs of 200 other rows. "power" is the growth of the
time a tree with n, from the line above to this one (1 is linear, 2 is quadratic).
"""

from typing import NamedTuple

import numpy as np

import dforest as df
from benchmarks.data import Task, synthetic
from benchmarks.harness import Row, worked
from benchmarks.synthetic import judged

SIZES = {"toy": (300, 600), "full": (2_000, 6_300, 20_000)}  # full: a decade
N_TREES = {"toy": 30, "full": 100}
SEEDS = {"toy": 1, "full": 3}
CAP = {"toy": 100, "full": 500}


class Cost(NamedTuple):
    """What a fit takes, and how good it is."""

    growing: float  # seconds a tree
    table: float  # seconds a tree
    hundred: float  # seconds, 100 trees and the checks of X and Z
    error: float


def cost(task: Task, Z, n_trees: int, cap: int | None, seed: int) -> Cost:
    """Fit one tree and many; the difference is what trees cost."""
    fits, refits = [], []
    for n in (1, n_trees):
        model = df.DistanceForest(
            n_estimators=n,
            max_features=4,
            min_samples_leaf=5,
            max_split_rows=cap,
            n_jobs=1,
            random_state=seed,
        )
        fits.append(worked(model.fit, task.X, Z)[0])
        error = judged(task.Z_test, model.pairwise(task.X_test))[0]
        refits.append(worked(model.refit_leaves, task.X, Z, leaf_rows="in_bag")[0])
    both, table = np.diff([fits, refits]).ravel() / (n_trees - 1)
    return Cost(both - table, table, fits[0] + 99 * both, error)


def compare(n: int, scale: str) -> Row:
    """Both searches in turn, seed by seed."""
    costs = []
    for seed in range(SEEDS[scale]):
        task = synthetic(n, seed=seed)
        Z = task.Z
        costs.append([cost(task, Z, N_TREES[scale], cap, seed) for cap in (CAP[scale], None)])
    capped, exhaustive = (Cost(*of.T) for of in np.array(costs).transpose(1, 0, 2))
    return {
        "ratio growing": float(np.median(exhaustive.growing / capped.growing)),
        "ratio 100 trees": float(np.median(exhaustive.hundred / capped.hundred)),
        "ratio MAE capped/exhaustive": capped.error.mean() / exhaustive.error.mean(),
        "n": n,
        "growing, capped": float(np.median(capped.growing)),
        "growing, exhaustive": float(np.median(exhaustive.growing)),
        "table": float(np.median([capped.table, exhaustive.table])),
        "100 trees, capped": float(np.median(capped.hundred)),
        "100 trees, exhaustive": float(np.median(exhaustive.hundred)),
        "MAE capped": capped.error.mean(),
        "MAE exhaustive": exhaustive.error.mean(),
    }


def with_powers(rows: list[Row]) -> list[Row]:
    """Add how steeply the time a tree grows from one size to the next."""
    for before, row in zip(rows[:-1], rows[1:], strict=True):
        for name in ("growing, capped", "growing, exhaustive", "table"):
            dearer = row[name] / before[name]
            row[f"power, {name}"] = float(np.log(dearer) / np.log(row["n"] / before["n"]))
    return rows


def run(scale: str) -> list[Row]:
    compare(SIZES["toy"][0], "toy")  # compiles
    return with_powers([compare(n, scale) for n in SIZES[scale]])
