"""Dense z: growing a tree and its leaf table, against gathering pairs in sorted order.

n = 4,000 rows, 16 features of which 4 are candidates in a node, leaves of at least 5 rows, every
row in every tree, exhaustive search and one thread on both sides. And the scan of the root alone,
against just reading z.
"""

import numpy as np

import dforest as df
from benchmarks import gathered
from benchmarks.data import Task, synthetic
from benchmarks.harness import Row, paired

N_ROWS = {"toy": 200, "full": 4000}
N_TREES = {"toy": 2, "full": 10}
REPEATS = {"toy": 1, "full": 5}
MAX_FEATURES, MIN_ROWS = 4, 5


def twin(task: Task, Z, n_trees: int) -> list[np.ndarray]:
    """Leaf tables of trees grown by gathering."""
    columns, tables = np.ascontiguousarray(task.X.T), []
    for seed in range(n_trees):
        rows = np.arange(len(Z), dtype=np.uint32)
        tree = gathered.Grown(*gathered.grow(columns, Z, rows, seed, MAX_FEATURES, MIN_ROWS))
        tables.append(gathered.leaf_table(Z, tree.rows, tree.starts))
    return tables


def twin_root(task: Task, Z) -> None:
    """The twin's search of the root: as many features as a node tries."""
    row_sums = np.empty(len(Z))
    for f in range(MAX_FEATURES):
        order = np.argsort(task.X[:, f]).astype(np.uint32)
        gathered.best_cut(Z, task.X[:, f].copy(), order, row_sums, f == 0, MIN_ROWS)


def forest(task: Task, Z, n_trees: int, max_depth: int | None = None):
    """Ours; its time includes the checks of X and Z, once for all trees."""
    return df.DistanceForest(
        n_estimators=n_trees,
        bootstrap=False,
        max_features=MAX_FEATURES,
        max_depth=max_depth,
        min_samples_leaf=MIN_ROWS,
        max_split_rows=None,
        n_jobs=1,
        random_state=0,
    ).fit(task.X, Z)


def root_against_reading(scale: str) -> list[Row]:
    """The physical limit: the twin's root as a multiple of reading z."""
    task = synthetic(N_ROWS[scale])
    Z = task.Z
    took = paired(lambda: gathered.read(Z), lambda: twin_root(task, Z), REPEATS[scale])
    return [
        {"ratio to reading z": 1.0, "what": "reading z", "ms": 1e3 * took.a},
        {"ratio to reading z": took.ratio, "what": "root, gathering", "ms": 1e3 * took.b},
    ]


def root(scale: str) -> Row:
    """Our root as a multiple of reading z, as what one more stump adds to a fit, table included."""
    task, n_trees = synthetic(N_ROWS[scale]), N_TREES[scale]
    Z = task.Z
    many = paired(
        lambda: forest(task, Z, 1, max_depth=1),
        lambda: forest(task, Z, 1 + n_trees, max_depth=1),
        REPEATS[scale],
    )
    read = paired(lambda: gathered.read(Z), lambda: gathered.read(Z), REPEATS[scale])
    stump = (many.b - many.a) / n_trees
    return {"ratio to reading z": stump / read.a, "what": "stump, ours", "ms": 1e3 * stump}


def whole_trees(scale: str) -> list[Row]:
    """Growing trees and their leaf tables, ours against the twin; ms a tree."""
    task, n_trees = synthetic(N_ROWS[scale]), N_TREES[scale]
    Z = task.Z
    took = paired(lambda: forest(task, Z, n_trees), lambda: twin(task, Z, n_trees), REPEATS[scale])
    return [
        {"what": "tree and table, gathering", "ms": 1e3 * took.b / n_trees},
        {
            "ratio twin/ours": took.ratio,
            "what": "tree and table, ours",
            "ms": 1e3 * took.a / n_trees,
        },
    ]


def answers(scale: str) -> list[Row]:
    """Leaf tables alone, and learned distances of 1,000 x 1,000 new rows; ms a tree."""
    task, n_trees = synthetic(N_ROWS[scale], 1000), N_TREES[scale]
    Z = task.Z
    model = forest(task, Z, n_trees)
    took = paired(
        lambda: model.refit_leaves(task.X, Z), lambda: model.pairwise(task.X_test), REPEATS[scale]
    )
    return [
        {"what": "leaf table, ours", "ms": 1e3 * took.a / n_trees},
        {"what": "a million distances, ours", "ms": 1e3 * took.b / n_trees},
    ]


def run(scale: str) -> list[Row]:
    return [*root_against_reading(scale), root(scale), *whole_trees(scale), *answers(scale)]
