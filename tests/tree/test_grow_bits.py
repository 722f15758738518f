"""The same tree, bit for bit, wherever and whenever it grows; and whatever the values of X."""

import numpy as np
import pytest

from dforest.seeds import child_key
from dforest.tree.binning import make_table
from dforest.tree.layout import Tree, leaf_nodes, leaf_ranges, n_leaves
from dforest.tree.route import route
from tree import cases


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("row_major", [False, True])
def test_grow__gives_the_same_bits_in_blocks_of_any_size(kind, row_major):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, w = cases.columns(rng, 100, 4), cases.bag(rng, 100)
        crit, _ = cases.make(rng, kind, 100)
        whole = cases.grow_on(X, crit, w, seed, max_features=2)
        table = make_table(X, row_major=row_major)
        for block_rows in (1, 3, 20, 50, 99):
            said = {"max_features": 2, "block_rows": block_rows}
            cases.same_trees(whole, cases.grow_on(X, crit, w, seed, table, **said))


def subtree(tree, node):
    """Return the tree below a node (single features only), and its nodes."""
    first, stop = leaf_ranges(tree.right)
    nodes = slice(node, node + 2 * (stop[node] - first[node]) - 1)
    right = np.where(tree.right[nodes] < 0, -1, tree.right[nodes] - node)
    flat = (getattr(tree, name)[nodes] for name in Tree._fields[:6])
    return Tree(*flat, *tree[6:])._replace(right=right.astype(np.int32))


@pytest.mark.parametrize("kind", cases.KINDS)
def test_grow__a_subtree_depends_on_its_rows_and_its_path_alone(kind):
    rng = np.random.default_rng(0)
    X, w = rng.random((80, 4)), cases.bag(rng, 80)  # no feature is constant in a node
    crit, _ = cases.make(rng, kind, 80)
    whole = cases.grow_on(X, crit, w, 5, max_features=2)
    reached = cases.through(whole, X)
    keys = {0: np.uint64(5)}
    for node in np.flatnonzero(whole.right >= 0):
        for side, child in enumerate((node + 1, whole.right[node])):
            keys[child] = np.uint64(child_key(keys[node], side))
            alone = cases.grow_on(X, crit, w * reached[child], keys[child], max_features=2)
            cases.same_trees(subtree(whole, child), alone)


@pytest.mark.parametrize("kind", ["matrix", "half_squared"])
def test_grow__gives_the_same_bits_from_mapped_and_read_only_arrays(kind, tmp_path):
    rng = np.random.default_rng(1)
    X, w = rng.random((50, 3)), cases.bag(rng, 50)
    crit, _ = cases.make(rng, kind, 50)
    table = make_table(X)

    def mapped(record):
        fields = record._asdict()
        for name, value in fields.items():
            if isinstance(value, np.ndarray) and value.size and name != "own":
                np.save(tmp_path / f"{name}.npy", value)
                fields[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        return type(record)(**fields)

    held = cases.grow_on(X, crit, w, table=table)
    cases.same_trees(held, cases.grow_on(X, mapped(crit), w, table=mapped(table)))


# Values of X -----------------------------------------------------------------------------------

HARD = [1.9, np.nextafter(1.9, 2), 16_777_216.0, 16_777_217.0, 0.0, 1e-7, 2e-7, -0.0, 5e-324, 1e300]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grow__parts_values_that_are_hard_to_tell_apart(dtype):
    with np.errstate(over="ignore"):
        x = np.minimum(np.array(HARD), np.finfo(dtype).max / 4).astype(dtype)
    X = x[:, None]
    tree = cases.grow_on(X, cases.precomputed(1 - np.eye(len(x))))
    assert n_leaves(tree) == len(np.unique(x))
    leaf = route(tree, X)
    np.testing.assert_array_equal(np.bincount(leaf), tree.weight[leaf_nodes(tree)])
    _, rank = np.unique(x, return_inverse=True)
    np.testing.assert_array_equal(leaf, rank)  # leaves are numbered from left to right


@pytest.mark.parametrize("max_bins", [2, 5, 40])
@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_binned__trees_return_training_rows_to_their_leaves(max_bins, unknown):
    rng = np.random.default_rng(2)
    X, w = rng.normal(size=(200, 3)), cases.bag(rng, 200)
    X[rng.random(X.shape) < unknown] = np.nan
    z = cases.matrix(rng, 200)
    table = make_table(X, max_bins=max_bins)
    tree = cases.grow_on(X, cases.precomputed(z), w, table=table, min_leaf=4)
    counts = np.bincount(route(tree, X), w, minlength=n_leaves(tree))
    np.testing.assert_array_equal(counts, tree.weight[leaf_nodes(tree)])
    assert n_leaves(tree) > 1


def test_binned__trees_are_exact_where_distinct_values_are_few():
    rng = np.random.default_rng(3)
    X, crit = rng.integers(0, 20, (100, 3)) / 7, cases.precomputed(cases.matrix(rng, 100))
    exact, binned = (cases.grow_on(X, crit, table=make_table(X, max_bins=b)) for b in (None, 20))
    cases.same_trees(exact, binned)
