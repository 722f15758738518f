"""Dense z: growing a tree and its leaf table, against gathering pairs in sorted order.

n = 4,000 rows, 16 features of which 4 are candidates in a node, leaves of at least 5 rows, every
row in every tree, exhaustive search and one thread on both sides; milliseconds a tree. And the scan
of the root alone, against just reading z.
"""

import numpy as np

import dforest as df
from benchmarks import gathered
from benchmarks.data import Task, synthetic
from benchmarks.harness import Row, in_turn, ratio
from dforest.jit import jit
from dforest.tree.criteria import Node, pair_sums, precomputed, start, take

N_ROWS = {"toy": 300, "full": 4000}
N_TREES = {"toy": 2, "full": 10}
REPEATS = {"toy": 1, "full": 9}
MAX_FEATURES, MIN_ROWS = 4, 5


@jit
def scan(crit, weights, ranks, n_ranks, left, right, count):
    """What the engine does with z at the root: enter it, and sum z on both sides of every cut."""
    taken = take(crit, np.arange(len(weights)))
    node = Node(0, len(weights), start(taken))
    pair_sums(taken, weights, node, ranks, n_ranks, left, right, count)


def our_root(task: Task, Z):
    """The scan of the root, and the sums it writes: left, right (candidates, n)."""
    n, sums = len(Z), np.zeros((3, MAX_FEATURES, len(Z)))
    crit = precomputed(Z, Z.max(), False, np.empty((1, 1), np.float32))
    order = np.argsort(task.X[:, :MAX_FEATURES].T, axis=1)
    ranks = np.argsort(order, axis=1).astype(np.int32)
    n_ranks = np.full(MAX_FEATURES, n)
    return lambda: scan(crit, np.ones(n), ranks, n_ranks, *sums), sums


def twin_root(task: Task, Z) -> None:
    """The twin's search of the root: as many features as a node tries."""
    row_sums = np.empty(len(Z))
    for f in range(MAX_FEATURES):
        order = np.argsort(task.X[:, f]).astype(np.uint32)
        gathered.best_cut(Z, task.X[:, f].copy(), order, row_sums, f == 0, MIN_ROWS)


def root_against_reading(scale: str) -> list[Row]:
    """Both scans of the root as multiples of reading z, the physical limit."""
    task = synthetic(N_ROWS[scale])
    Z = task.Z
    seconds = in_turn(
        lambda: gathered.read(Z),
        our_root(task, Z)[0],
        lambda: twin_root(task, Z),
        repeats=REPEATS[scale],
    )
    return [
        {"ratio to reading z": ratio(spent, seconds[:, 0]), "what": what, "ms": _ms(spent)}
        for what, spent in zip(("reading z", "root, ours", "root, gathering"), seconds.T)
    ]


def twin_trees(task: Task, Z, n_trees: int) -> list[gathered.Grown]:
    """Trees grown by gathering."""
    columns = np.ascontiguousarray(task.X.T)
    return [
        gathered.Grown(
            *gathered.grow(
                columns, Z, np.arange(len(Z), dtype=np.uint32), seed, MAX_FEATURES, MIN_ROWS
            )
        )
        for seed in range(n_trees)
    ]


def twin_tables(Z, trees: list[gathered.Grown]) -> list[np.ndarray]:
    return [gathered.leaf_table(Z, tree.rows, tree.starts) for tree in trees]


def forest(task: Task, Z, n_trees: int):
    """Ours; its time includes the checks of X and Z, once for all trees."""
    return df.DistanceForest(
        n_estimators=n_trees,
        bootstrap=False,
        max_features=MAX_FEATURES,
        min_samples_leaf=MIN_ROWS,
        max_split_rows=None,
        n_jobs=1,
        random_state=0,
    ).fit(task.X, Z)


def whole_trees(scale: str) -> list[Row]:
    """Growing trees and their leaf tables, and a million answers.

    Our growing is a fit less a refit of its leaves.
    """
    task, n_trees = synthetic(N_ROWS[scale], 1000), N_TREES[scale]
    Z = task.Z
    ours, trees = forest(task, Z, n_trees), twin_trees(task, Z, n_trees)
    fit, refit, grown, tabulated, answered = in_turn(
        lambda: forest(task, Z, n_trees),
        lambda: ours.refit_leaves(task.X, Z, leaf_rows="in_bag"),
        lambda: twin_trees(task, Z, n_trees),
        lambda: twin_tables(Z, trees),
        lambda: ours.pairwise(task.X_test),
        repeats=REPEATS[scale],
    ).T
    rows: list[Row] = []
    for what, us, twin in (
        ("growing", fit - refit, grown),
        ("leaf table", refit, tabulated),
        ("growing and leaf table", fit, grown + tabulated),
    ):
        rows.append({"what": f"{what}, gathering", "ms": _ms(twin) / n_trees})
        rows.append({"what": f"{what}, ours", "ms": _ms(us) / n_trees})
        rows[-1]["ratio twin/ours"] = ratio(twin, us)
    return [*rows, {"what": "a million distances, ours", "ms": _ms(answered) / n_trees}]


def _ms(seconds) -> float:
    return 1e3 * float(np.median(seconds))


def run(scale: str) -> list[Row]:
    return [*root_against_reading(scale), *whole_trees(scale)]
