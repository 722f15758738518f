"""What a forest answers: leaves, learned distances, neighbours, out-of-bag distances."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from dforest.errors import DataError, SpecError
from dforest.jit import jit
from dforest.methods.forest import route_all
from dforest.methods.model import Forest
from dforest.run.here import Here
from dforest.run.memory import memory_bytes
from dforest.run.passes import Pass
from dforest.tree.layout import n_leaves
from dforest.tree.leaves import grid, paired

BLOCK_BYTES = 1 << 26  # of one block of answers


class Answer(NamedTuple):
    """Means over trees, and their spread where it was asked for."""

    mean: np.ndarray
    std: np.ndarray | None


def apply(forest: Forest, X, runner: Here) -> np.ndarray:
    """Leaf of each row in each tree, (n, T) int32, by blocks of rows."""
    blocks = _blocks(X.shape[0], 8_192)
    job = Pass("apply", lambda rows: {"leaves": route_all(forest.trees, X[rows])}, _each(blocks))
    return np.concatenate([part["leaves"] for part in runner.run(job)])


def pairwise(forest: Forest, ones, others, runner: Here, *, with_std=False, votes=None) -> Answer:
    """Mean learned distance of every row of one set with every row of the other.

    Parameters
    ----------
    ones, others : (a, T), (b, T) int32
        Leaves of the rows.
    votes : ((a, T), (b, T), "both" or "either"), optional
        Which tree may answer for which row; a pair without any tree is NaN.

    Raises
    ------
    SpecError
        The answer does not fit into half of the memory that this process may use.
    """
    a, b = len(ones), len(others)
    _refuse_large(a, b, 2 if with_std else 1)
    mean = np.empty((a, b))
    std = np.empty((a, b)) if with_std else None
    blocks, sides = _blocks(a, BLOCK_BYTES // (8 * 4 * max(b, 1))), _by_leaf(others)

    def answer(rows):
        return _block(forest, ones[rows], sides, b, with_std, _of_rows(votes, rows))

    for rows, part in zip(blocks, runner.run(Pass("pairwise", answer, _each(blocks))), strict=True):
        mean[rows] = part["mean"]
        if std is not None:
            std[rows] = part["std"]
    return Answer(mean, std)


def between(forest: Forest, ones, others, votes=None) -> np.ndarray:
    """Mean learned distances of one block of leaves with another, (a, b), without any pass."""
    return _block(forest, ones, _by_leaf(others), len(others), False, votes)["mean"]


def _refuse_large(a: int, b: int, copies: int) -> None:
    needed, limit = 8 * a * b * copies, memory_bytes() // 2
    if needed > limit:
        raise SpecError(
            f"all {a:,} x {b:,} distances take {needed / 2**30:,.2f} GiB, the limit is "
            f"{limit / 2**30:,.2f} (half the memory); give out=PATH, or ask for kneighbors"
        )


def _blocks(n: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _by_leaf(leaves) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each tree, the different leaves that rows (b, T) are in, and where each row's is."""
    return [np.unique(leaves[:, t], return_inverse=True) for t in range(leaves.shape[1])]


def _each(blocks) -> list[list]:
    return [[block] for block in blocks]


def _of_rows(votes, rows):
    return None if votes is None else (votes[0][rows], *votes[1:])


def _block(forest: Forest, ones, sides, b: int, with_std: bool, votes) -> dict[str, np.ndarray]:
    """Answers of one block of rows, tree by tree in their order."""
    total, square, count, apart, pairs = np.zeros((5, len(ones), b))
    is_kernel = forest.recipe.weighting == "kernel"
    either = votes is not None and votes[2] == "either"
    everyone = np.ones(len(ones), bool), np.ones(b, bool)
    for t, table in enumerate(forest.tables):
        leaf, place = np.unique(ones[:, t], return_inverse=True)
        means, known = grid(table, leaf, sides[t][0])
        may = everyone if votes is None else (votes[0][:, t], votes[1][:, t])
        _add(means, known, place, sides[t][1], *may, either, is_kernel, total, square, count,
             apart, pairs)  # fmt: skip
    mean, spread = _finish(total, square, count, apart, pairs, is_kernel)
    return {"mean": mean, "std": spread} if with_std else {"mean": mean}


@jit
def _add(means, known, place_a, place_b, may_a, may_b, either, is_kernel, total, square, count,
         apart, pairs):  # fmt: skip
    """Add one tree's answers, where it may answer, to the running sums (a, b)."""
    for i in range(len(place_a)):
        row, known_row = means[place_a[i]], known[place_a[i]]
        for j in range(len(place_b)):
            may = (may_a[i] or may_b[j]) if either else (may_a[i] and may_b[j])
            value = row[place_b[j]]
            if may and not np.isnan(value):  # a tree that knows no z at all abstains
                total[i, j] += value
                square[i, j] += value * value
                count[i, j] += 1.0
                if is_kernel:
                    weight = known_row[place_b[j]]
                    apart[i, j] += weight * value
                    pairs[i, j] += weight


def _finish(total, square, count, apart, pairs, is_kernel):
    """Means and spreads; with kernel weighting, the sum of z over the sum of pairs."""
    asked = count > 0
    mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=asked)
    spread = np.divide(square, count, out=np.full(total.shape, np.nan), where=asked) - mean**2
    if is_kernel:  # a pair that no tree knows keeps the mean of what their ancestors said
        np.divide(apart, pairs, out=mean, where=pairs > 0)
    return mean, np.sqrt(np.maximum(spread, 0.0))


def paired_rows(forest: Forest, ones, others) -> np.ndarray:
    """Mean learned distance row by row: leaves (n, T) and (n, T) -> (n,)."""
    total, square, count, apart, pairs = np.zeros((5, len(ones)))
    for t, table in enumerate(forest.tables):
        means, known = paired(table, ones[:, t], others[:, t])
        told = ~np.isnan(means)
        total[told] += means[told]
        count += told
        apart[told] += known[told] * means[told]
        pairs += known
    return _finish(total, square, count, apart, pairs, forest.recipe.weighting == "kernel")[0]


def nearest(forest: Forest, ones, others, k: int, runner: Here, *, skip_self=False):
    """The k nearest rows of ``others`` for each of ``ones``, given by leaves; never all at once.

    Equal distances are taken in the order of rows. Returns distances (a, k), indices (a, k) int64.
    """
    a, b = len(ones), len(others)
    if not 1 <= k <= b - skip_self:
        raise DataError(f"n_neighbors must be from 1 to {b - skip_self}, got {k}")
    blocks, sides = _blocks(a, BLOCK_BYTES // (8 * 4 * b)), _by_leaf(others)

    def answer(rows):
        apart = _block(forest, ones[rows], sides, b, False, None)["mean"]
        if skip_self:
            apart[np.arange(len(apart)), np.arange(rows.start, rows.stop)] = np.nan
        index = np.stack([smallest(row, k) for row in apart])
        return {"index": index, "distance": np.take_along_axis(apart, index, axis=1)}

    parts = list(runner.run(Pass("nearest", answer, _each(blocks))))
    return (
        np.concatenate([part["distance"] for part in parts]),
        np.concatenate([part["index"] for part in parts]),
    )


def smallest(row: np.ndarray, k: int) -> np.ndarray:
    """Places of the k smallest values, ascending; equal ones by place, NaN last.

    >>> smallest(np.array([2.0, 1.0, np.nan, 1.0]), 3)
    array([1, 3, 0])
    """
    filled = np.where(np.isnan(row), np.inf, row)
    limit = np.partition(filled, k - 1)[k - 1]
    near = np.flatnonzero(filled <= limit)
    return near[np.argsort(filled[near], kind="stable")[:k]]


def one_hot(forest: Forest, leaves: np.ndarray) -> sparse.csr_array:
    """Leaves (n, T) as a sparse (n, leaves of all trees), one 1 for each tree."""
    begin = np.append(0, np.cumsum([n_leaves(tree) for tree in forest.trees]))
    return rows_of_few(leaves + begin[:-1], np.ones(leaves.shape), begin[-1])


def rows_of_few(columns: np.ndarray, values: np.ndarray, n_columns: int) -> sparse.csr_array:
    """A sparse matrix with as many entries in every row: columns and values (n, k).

    >>> rows_of_few(np.array([[2], [0]]), np.array([[5.0], [6.0]]), 3).toarray()
    array([[0., 0., 5.],
           [6., 0., 0.]])
    """
    indptr = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_array(
        (values.ravel(), columns.ravel(), indptr), shape=(len(columns), n_columns)
    )


def out_of_bag(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """Whether each row was out of each tree's bag: (k, T) bool."""
    outside = np.ones((forest.n_rows, len(forest.trees)), bool)
    for t in range(len(forest.trees)):
        outside[forest.bag(t)[0], t] = False
    return outside[rows]


def importances(forest: Forest) -> np.ndarray:
    """Share of all gains of equation (1) that each feature's splits made: (p,), sums to 1.

    The gain of an oblique split is shared among its features. All zeros if no tree has split.
    """
    gains = np.zeros(forest.n_features)
    for tree in forest.trees:
        axis = tree.feature >= 0
        np.add.at(gains, tree.feature[axis], tree.gain[axis])
        for node in np.flatnonzero(tree.feature < -1):
            k = -2 - tree.feature[node]
            terms = tree.columns[tree.starts[k] : tree.starts[k + 1]]
            gains[terms] += tree.gain[node] / len(terms)
    return gains / gains.sum() if gains.sum() > 0 else gains
