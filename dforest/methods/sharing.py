"""Who shares a leaf with whom: KeRF's connection, the weights of votes, RF-GAP proximities.

All are sparse matrices of rows asked about by rows that were fitted, or asked about too.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from dforest.errors import SpecError
from dforest.methods.answers import one_hot
from dforest.methods.model import Forest
from dforest.methods.notions import Given
from dforest.methods.votes import TREE_BLOCK, Side, side_of
from dforest.run.memory import memory_bytes
from dforest.tree.layout import n_leaves
from dforest.tree.leaves import Own, ValueTable, median_places, seats, shape_of

ENTRY_BYTES = 48  # of an entry while sparse matrices are added: value and index, three times


def connection(forest: Forest, ones, others) -> sparse.csr_array:
    """K(x, z), equation (1) of KeRF: the share of trees in which two rows share a leaf.

    Parameters
    ----------
    ones, others : (a, T), (b, T) int32
        Leaves of the rows.

    Raises
    ------
    SpecError
        So many pairs share leaves that they may take more than half of the memory.
    """
    _refuse_large(forest, ones, others)
    shared = one_hot(forest, ones) @ one_hot(forest, others).T
    shared.data /= len(forest.trees)
    return shared


def forest_weights(forest: Forest, given: Given, leaves) -> sparse.csr_array:
    """W of equation (6): how much each fitted row's response counts in each prediction.

    Predictions are ``W @ y``, whatever rows vote, however they are weighed; where a leaf predicts a
    median, y counts only of the one or two rows that it lies between.

    Parameters
    ----------
    leaves : (a, T) int32
        Leaves of the rows to predict.
    given : Given
        The responses that the forest was fitted on.

    Returns
    -------
    (a, n) sparse
        Each row sums to 1.
    """
    _refuse_large(forest, leaves, forest.leaves)
    return _weights(forest, given, leaves, is_outside=False)


def proximity(forest: Forest, given: Given) -> sparse.csr_array:
    """RF-GAP proximities: `forest_weights` of the fitted rows, by trees not grown on them.

    Out-of-bag predictions are ``P @ y``. The diagonal is 0, as no row votes for itself; P is not
    symmetric. A row that was never out of bag has no entries; every other row sums to 1.
    """
    _refuse_large(forest, forest.leaves, forest.leaves)
    return _weights(forest, given, forest.leaves, is_outside=True)


def _refuse_large(forest: Forest, ones, others) -> None:
    entries = 0.0
    for t, size in enumerate(map(n_leaves, forest.trees)):
        a, b = (np.bincount(side[:, t], minlength=size) for side in (ones, others))
        entries += float(a.astype(np.float64) @ b)
    entries = min(entries, float(len(ones)) * len(others))
    needed, limit = ENTRY_BYTES * entries, memory_bytes() / 2
    if needed > limit:
        raise SpecError(
            f"up to {entries:,.0f} of {len(ones):,} x {len(others):,} pairs of rows share a leaf, "
            f"which takes {needed / 2**30:,.2f} GiB, the limit is {limit / 2**30:,.2f} (half the "
            "memory); ask about fewer rows at once"
        )


class _Asked(NamedTuple):
    """One tree's part of the weights: ``by_tree @ votes`` and ``by_row @ votes``."""

    by_tree: sparse.csr_array  # (a, cells): of one entry a row, so that its weights sum to 1
    by_row: sparse.csr_array  # the same, times the rows that vote; 0 where an ancestor speaks
    votes: sparse.csr_array  # (cells, n): how often each fitted row votes in a cell


def _weights(forest: Forest, given: Given, leaves, is_outside: bool) -> sparse.csr_array:
    by_tree, by_row = (sparse.csr_array((len(leaves), forest.n_rows)) for _ in range(2))
    for begin in range(0, len(forest.trees), TREE_BLOCK):
        trees = range(begin, min(begin + TREE_BLOCK, len(forest.trees)))
        asked = [_ask(forest, given, t, leaves[:, t], is_outside) for t in trees]
        votes = sparse.vstack([one.votes for one in asked], format="csr")
        by_tree += sparse.hstack([one.by_tree for one in asked], format="csr") @ votes
        if forest.recipe.weighting == "kernel":
            by_row += sparse.hstack([one.by_row for one in asked], format="csr") @ votes
    if is_outside:  # a row's own votes
        by_tree, by_row = (both - sparse.diags_array(both.diagonal()) for both in (by_tree, by_row))
    total, apart = by_row.sum(axis=1), by_tree.sum(axis=1)
    by_row = _scaled(by_row, total) + _scaled(by_tree, np.where(total > 0.0, 0.0, apart))
    by_row.eliminate_zeros()
    return by_row


def _scaled(weights: sparse.csr_array, total) -> sparse.csr_array:
    """Rows divided by ``total`` (a,); rows whose total is 0 are left out."""
    part = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
    return sparse.csr_array(sparse.diags_array(part) @ weights)


def _ask(forest: Forest, given: Given, t: int, leaf, is_outside: bool) -> _Asked:
    side, a = side_of(forest, given, t), len(leaf)
    table, own = side.table, None
    asked = np.flatnonzero(side.outside) if is_outside else np.arange(a)
    node = table.node[leaf[asked]]
    if is_outside:
        own = Own(side.own[asked], given.arrays["y"][asked])
    seat = seats(table, node, own)
    rest = table.weight[seat] - (own.weight if own else 0.0)
    told = rest > 0.0  # false only where the row votes alone in the whole tree
    asked, seat, rest, is_leaf = asked[told], seat[told], rest[told], (seat == node)[told]
    if isinstance(table, ValueTable):
        own = Own(own.weight[told], own.y[told]) if own else None
        cell, votes, part = _by_median(side, given, seat, own)
    else:
        cell, votes = _by_cell(side, forest.trees[t], seat)
        part = 1.0 / rest
    shape = a, votes.shape[0]
    by_tree, by_row = (
        sparse.csr_array((values, (asked, cell)), shape) for values in (part, part * rest * is_leaf)
    )
    return _Asked(by_tree, by_row, votes)


def _by_cell(side: Side, tree, seat) -> tuple[np.ndarray, sparse.csr_array]:
    """All rows below each node count: the cell of each ``seat`` (b,), votes (cells, n)."""
    nodes, cell = np.unique(seat, return_inverse=True)
    rows = np.flatnonzero(side.own)
    rows = rows[np.argsort(side.leaf[rows], kind="stable")]
    shape = shape_of(tree)
    begin = np.searchsorted(side.leaf[rows], shape.first[nodes])
    size = np.searchsorted(side.leaf[rows], shape.stop[nodes]) - begin
    ends = np.concatenate([[0], np.cumsum(size)])
    taken = rows[np.arange(ends[-1]) + np.repeat(begin - ends[:-1], size)]
    votes = sparse.csr_array((side.own[taken], taken, ends), (len(nodes), len(side.leaf)))
    return cell, votes


def _by_median(side: Side, given: Given, seat, own) -> tuple:
    """Two rows below each node count, or one: a cell for each ``seat`` (b,), votes (b, n), 1."""
    y, rows = given.arrays["y"], np.flatnonzero(side.own)
    rows = rows[np.lexsort((side.own[rows], y[rows], side.leaf[rows]))]  # as `value_table` has them
    middle = np.stack([rows[place] for place in median_places(side.table, seat, own)], axis=1)
    each = np.arange(len(seat))
    votes = sparse.csr_array(
        (np.full(middle.size, 0.5), middle.ravel(), 2 * np.arange(len(seat) + 1)),
        (len(seat), len(y)),
    )
    return each, votes, np.ones(len(seat))
