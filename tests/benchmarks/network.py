"""A large sparse graph: 10 trees on two threads, in a process of its own, with its peak memory."""

import numpy as np
from scipy import sparse

import dforest as df
from benchmarks.harness import Row, in_fresh_process, timed

SIZES = {"toy": (300, 1_500), "full": (100_000, 1_000_000)}  # nodes, edges
LIMITS = {"s": 60.0, "peak GB": 1.5}  # of the full size


def made_up(n: int, n_edges: int, seed: int = 0):
    """Features (n, 16) and a symmetric CSR graph whose nodes link when near in the first one."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.random((n, 16)), axis=0)
    X[:, 1:] = rng.permuted(X[:, 1:], axis=0)
    first = rng.integers(0, n - 1, 2 * n_edges)
    apart = 1 + rng.geometric(1 / 30, 2 * n_edges)
    keep = first + apart < n
    pairs = np.unique(np.column_stack([first, first + apart])[keep], axis=0)
    pairs = pairs[rng.permutation(len(pairs))[:n_edges]]
    upper = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(n, n)).tocsr()
    return X, (upper + upper.T).tocsr()


def fit(n: int, n_edges: int, n_trees: int) -> dict[str, float]:
    """Seconds, after a tree that compiles; how far apart links and other pairs come out."""
    X, weights = made_up(n, n_edges)
    graph = df.Graph(weights)
    one, model = (
        df.DistanceForest("graph", k, min_samples_leaf=5, n_jobs=2, random_state=0)
        for k in (1, n_trees)
    )
    one.fit(X, graph)
    seconds, _ = timed(model.fit, X, graph)
    i, j = (ends[:: max(1, len(ends) // 1000)] for ends in weights.nonzero())
    others = np.random.default_rng(1).permutation(j)
    asked, (linked, apart) = timed(lambda: [model.paired(X[i], X[to]) for to in (j, others)])
    return {
        "s": seconds,
        "s, 2,000 answers": asked,
        "distance of links": linked.mean(),
        "of other pairs": apart.mean(),
    }


def run(scale: str) -> list[Row]:
    (n, n_edges), n_trees = SIZES[scale], 10
    found, peak = in_fresh_process(fit, n, n_edges, n_trees)
    row: Row = {"nodes": n, "edges": n_edges, "trees": n_trees} | found | {"peak GB": peak / 1e9}
    if scale == "full":
        row = {f"ratio {name}/limit": row[name] / limit for name, limit in LIMITS.items()} | row
    return [row]
