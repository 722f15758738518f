"""What a leaf predicts: whatever is nearest, in mean distance, to the rows that vote in it.

For z = |y - y'|^2 / 2 that is their mean, for |y - y'| their median; for 0/1 of classes it is the
commonest class, told by the shares of all. A leaf in which nobody votes says what its nearest
ancestor with votes says, so that no answer is 0/0.
"""

from typing import NamedTuple

import numpy as np

from dforest.tree.leaves.responses import ClassTable, MomentTable, ValueTable

ROUNDING = 1e-9  # of sums of weights that are no whole numbers


class VoteTable(NamedTuple):
    """Predictions of the leaves of one tree."""

    value: np.ndarray  # (L, q) float64: shares of q classes, means of q responses, or a median
    weight: np.ndarray  # (L,) float64: drawn rows that vote; 0 where an ancestor speaks


class Own(NamedTuple):
    """Votes to leave out: those of the rows that ask, so that none answers for itself."""

    weight: np.ndarray  # (b,) float64: how often each votes; 0 where it does not
    y: np.ndarray  # (b,) codes of classes, (b, q) responses or (b,) values, as the table has them


def vote_table(table) -> VoteTable:
    """What every leaf of a `ClassTable`, `MomentTable` or `ValueTable` predicts.

    >>> from dforest.tree.leaves.responses import value_table
    >>> from dforest.tree.leaves.verbs import Shape
    >>> two_leaves = Shape(*map(np.array, ([1, 2], [0, 0, 1], [2, 1, 2], [0, 0, 0])))
    >>> ends, drawn, y = np.array([0, 0, 0]), np.ones(3), np.array([1.0, 2.0, 9.0])
    >>> vote_table(value_table(two_leaves, ends, drawn, y, True)).value.tolist()
    [[2.0], [2.0]]
    """
    return VoteTable(value_at(table, seats(table, table.node)), table.weight[table.node])


def seats(table, node, own: Own | None = None) -> np.ndarray:
    """The nearest ancestor of each node (b,), or itself, in which a row other than ``own`` votes.

    (b,) int64; the root where there is no such row at all.
    """
    least = 0.0 if own is None else own.weight * (1.0 + ROUNDING)
    seat = np.array(node, np.int64)
    while (lonely := (table.weight[seat] <= least) & (seat > 0)).any():
        seat = np.where(lonely, table.parent[seat], seat)
    return seat


def value_at(table, seat, own: Own | None = None) -> np.ndarray:
    """What the rows below the nodes ``seat`` (b,) predict, ``own`` left out: (b, q) float64.

    NaN where nobody is left.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if isinstance(table, ClassTable):
            return _shares(table, seat, own)
        if isinstance(table, MomentTable):
            return _means(table, seat, own)
    low, high = median_places(table, seat, own)
    return (0.5 * table.values[low] + 0.5 * table.values[high])[:, None]


def _shares(table: ClassTable, seat, own: Own | None) -> np.ndarray:
    counts, weight = table.counts[seat], table.weight[seat]
    if own is not None:
        counts[np.arange(len(seat)), own.y] -= own.weight
        weight = weight - own.weight
    return counts / weight[:, None]


def _means(table: MomentTable, seat, own: Own | None) -> np.ndarray:
    mean = table.mean[seat]
    if own is None:
        return mean
    share = own.weight / (table.weight[seat] - own.weight)
    return mean + (mean - own.y) * share[:, None]


def median_places(table: ValueTable, seat, own: Own | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Places in ``table.values`` of the two middle values below each node: (b,), (b,) int64.

    They are one place where the middle is one row. A node needs a row other than ``own``.
    """
    nodes, cell = np.unique(seat, return_inverse=True)
    first, last = table.offsets[table.first[nodes]], table.offsets[table.stop[nodes]]
    begin = np.concatenate([[0], np.cumsum(last - first)])
    group = np.repeat(np.arange(len(nodes)), last - first)
    place = np.arange(begin[-1]) + (first - begin[:-1])[group]
    order = np.lexsort((table.values[place], group))  # a node's leaves are sorted, not the node
    place, drawn = place[order], table.drawn[place[order]]
    run = np.cumsum(drawn)
    before = np.concatenate([[0.0], run])[begin[:-1]][cell]
    if own is None:
        half = before + 0.5 * table.weight[seat]
        found = [np.searchsorted(run, half, side) for side in ("left", "right")]
    else:
        half = before + 0.5 * (table.weight[seat] - own.weight)
        gap = _first_not_below(table.values[place], group, cell, own.y)
        found = [
            np.where(
                (early := np.searchsorted(run, half, side)) < gap,
                early,
                np.searchsorted(run, half + own.weight, side),
            )
            for side in ("left", "right")
        ]
    low, high = (place[np.clip(at, begin[cell], begin[cell + 1] - 1)] for at in found)
    return low, high


def _first_not_below(values, group, cell, y) -> np.ndarray:
    """Place of the first value of group ``cell`` (b,) that is at least ``y`` (b,): (b,) int64.

    ``values`` (k,) ascend within each group; groups (k,) ascend.
    """
    known = np.unique(values)
    width = len(known) + 1
    keys = group * width + np.searchsorted(known, values)
    return np.searchsorted(keys, cell * width + np.searchsorted(known, y))
