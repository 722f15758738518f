"""`max_split_rows`: trees from searches of at most 500 rows, against exhaustive search.

Dense z in memory, the task of `benchmarks.synthetic`, 4 candidate features of 16, leaf 5, all
threads. Errors are on pairs of 200 other rows, means over seeds; "power" is the growth of the
time a tree with n, from the line above to this one (1 is linear, 2 is quadratic).
"""

import numpy as np

import dforest as df
from benchmarks.data import Task, synthetic
from benchmarks.harness import Row, timed
from benchmarks.synthetic import judged

SIZES = {"toy": (150, 300), "full": (2_000, 6_300, 20_000)}  # full: a decade
N_TREES = {"toy": 2, "full": 10}
SEEDS = {"toy": 1, "full": 3}
CAP = {"toy": 50, "full": 500}


def forest(task: Task, Z, n_trees: int, cap: int | None, seed: int):
    return df.DistanceForest(
        n_estimators=n_trees,
        max_features=4,
        min_samples_leaf=5,
        max_split_rows=cap,
        random_state=seed,
    ).fit(task.X, Z)


def compare(n: int, scale: str) -> Row:
    """Both searches in turn, seed by seed: medians of seconds, means of errors."""
    task = synthetic(n)
    Z, seconds, errors = task.Z, [], []
    for seed in range(SEEDS[scale]):
        both = [timed(forest, task, Z, N_TREES[scale], cap, seed) for cap in (CAP[scale], None)]
        seconds.append([spent for spent, _ in both])
        errors.append([judged(task.Z_test, f.pairwise(task.X_test))[0] for _, f in both])
    spent, error = np.array(seconds), np.mean(errors, axis=0)
    capped, exhaustive = np.median(spent, axis=0) / N_TREES[scale]
    return {
        "ratio exhaustive/capped": float(np.median(spent[:, 1] / spent[:, 0])),
        "ratio MAE capped/exhaustive": error[0] / error[1],
        "n": n,
        "s a tree, capped": capped,
        "s a tree, exhaustive": exhaustive,
        "MAE capped": error[0],
        "MAE exhaustive": error[1],
    }


def with_powers(rows: list[Row]) -> list[Row]:
    """Add how steeply the time a tree grows from one size to the next."""
    for before, row in zip(rows[:-1], rows[1:], strict=True):
        for search in ("capped", "exhaustive"):
            dearer = row[f"s a tree, {search}"] / before[f"s a tree, {search}"]
            row[f"power, {search}"] = float(np.log(dearer) / np.log(row["n"] / before["n"]))
    return rows


def run(scale: str) -> list[Row]:
    compare(SIZES["toy"][0], "toy")  # compiles
    return with_powers([compare(n, scale) for n in SIZES[scale]])
