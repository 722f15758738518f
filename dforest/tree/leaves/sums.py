"""Sums of distances over the pairs of every two cells of a tree, block by block of the matrix.

A cell is a leaf, or several. Sums are whole numbers on a grid (`matrix_scale`), so that those of
different blocks add up to the same bits in any order, wherever they were made.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.leaves.verbs import WHOLE
from dforest.tree.scan import MAX_EXPONENT

SIDE = 4_096  # rows of a block: cells then have several rows in it, which are added up first


class Votes(NamedTuple):
    """Rows that vote, block of rows by block, within a block in the order of their cells."""

    place: np.ndarray  # (k,) int32: row, counted from the first of its block
    cell: np.ndarray  # (k,) int32
    weight: np.ndarray  # (k,) int32: how often the row counts
    begin: np.ndarray  # (blocks + 1,) int64: votes of a block are begin[block]:begin[block + 1]

    def of(self, block: int) -> "Votes":
        """Those of one block."""
        own = slice(self.begin[block], self.begin[block + 1])
        return Votes(self.place[own], self.cell[own], self.weight[own], self.begin[:0])


class SquareSums(NamedTuple):
    """Sums over the pairs of some blocks; those of other blocks add to them."""

    total: (
        np.ndarray
    )  # (C, C) int64, z on the grid; [p, q] and [q, p] together hold each pair twice
    known: np.ndarray  # (C, C) int64: pairs whose z is known; (0, 0) where all are


class MatrixSums(NamedTuple):
    """Sums over all pairs, lower triangle by rows."""

    total: np.ndarray  # (C (C + 1) / 2,) int64, z on the grid, ordered pairs
    known: np.ndarray  # the same shape, int64: pairs of drawn rows whose z is known


@jit
def triangle(one, other):
    """Place of the pair of two cells in a lower triangle stored row by row."""
    return one * (one + 1) // 2 + other if one >= other else other * (other + 1) // 2 + one


def matrix_scale(largest: float, n_drawn: float) -> float:
    """Grid on which z is summed: as fine as sums below 2**62 allow."""
    exponent = np.ceil(np.log2(largest)) if largest > 0 else 0.0
    bits = WHOLE - 2.0 * np.ceil(np.log2(max(n_drawn, 1.0)))
    return 2.0 ** min(bits - exponent, MAX_EXPONENT)


def votes_of(rows, cell, weights, n_rows: int, side: int = SIDE) -> Votes:
    """Sort the votes of ``rows`` (k,), of whose cells and weights (k,), into blocks of rows.

    >>> votes = votes_of(np.array([0, 1, 2, 3]), np.array([1, 0, 0, 5]), np.ones(4), 4, side=2)
    >>> votes.place, votes.cell, votes.begin
    (array([1, 0, 0, 1], dtype=int32), array([0, 1, 0, 5], dtype=int32), array([0, 2, 4]))
    """
    block = rows // side
    order = np.lexsort((rows, cell, block))
    begin = np.searchsorted(block[order], np.arange(-(-n_rows // side) + 1))
    told = (rows % side, cell, weights)
    return Votes(*(array[order].astype(np.int32) for array in told), begin)


def no_sums(n_cells: int, has_unknown: bool) -> SquareSums:
    """Sums over no pair."""
    return SquareSums(
        np.zeros((n_cells, n_cells), np.int64),
        np.zeros((n_cells, n_cells) if has_unknown else (0, 0), np.int64),
    )


def add_block(z, corner, n_columns, ones, others, scale, self_pairs, sums: SquareSums) -> None:
    """Add the pairs of one block of rows with another, or with itself, to the sums.

    Parameters
    ----------
    z : (r, c) C-contiguous float32
        Holds the block of distances from its place ``corner`` on, ``n_columns`` wide; NaN where
        unknown. A block on the diagonal is symmetric.
    ones, others : Votes
        Of the block's rows and of its columns: the same object on the diagonal.
    scale : float
        See `matrix_scale`.
    """
    z = z.view(np.ndarray)
    z.flags.writeable = False  # one compiled form for arrays and mapped files
    on_diagonal = ones is others
    place = int(corner[0]), int(corner[1]), int(n_columns)
    sides = *ones[:3], *others[:3]
    # a block off the diagonal stands for its mirror image too
    _add_block(z, *place, *sides, float(scale), 1 if on_diagonal else 2, *sums)
    if on_diagonal and not self_pairs:
        _drop_selves(z, *place[:2], *ones[:3], float(scale), *sums)


@jit
def _add_block(z, top, left, n_columns, place, cell, weight, places, cells, weights, scale, twice,
               total, known):  # fmt: skip
    """Add up the rows of each cell, as whole rows, then their columns by cell."""
    factor, has_unknown = np.float32(scale), len(known) > 0
    apart, counted = np.empty(n_columns, np.int64), np.empty(n_columns, np.int64)
    a = 0
    while a < len(place):
        one = cell[a]
        apart[:] = 0
        counted[:] = 0
        while a < len(place) and cell[a] == one:
            row = z[top + place[a], left : left + n_columns]
            add_row(row, np.int64(weight[a]) * twice, factor, apart, counted, has_unknown)
            a += 1
        line = total[one]
        if not has_unknown:
            for b in range(len(places)):
                line[cells[b]] += np.int64(weights[b]) * apart[places[b]]
            continue
        b = 0
        while b < len(places):
            other, sum_z, sum_known = cells[b], np.int64(0), np.int64(0)
            while b < len(places) and cells[b] == other:
                sum_z += np.int64(weights[b]) * apart[places[b]]
                sum_known += np.int64(weights[b]) * counted[places[b]]
                b += 1
            line[other] += sum_z
            known[one, other] += sum_known


@jit
def add_row(row, weight, scale, apart, known, has_unknown):
    """Add ``weight`` times a part of a row of z to ``apart`` (m,) int64, its known z to ``known``.

    As fast as memory is read.
    """
    if not has_unknown:
        for j in range(len(apart)):
            apart[j] += weight * np.int64(np.rint(row[j] * scale))
        return
    for j in range(len(apart)):
        is_known = row[j] == row[j]
        value = row[j] if is_known else np.float32(0.0)
        apart[j] += weight * np.int64(np.rint(value * scale))
        known[j] += weight if is_known else 0


@jit
def _drop_selves(z, top, left, place, cell, weight, scale, total, known):
    """Take each row's pairs with itself out of a block on the diagonal."""
    for a in range(len(place)):
        own, one = z[top + place[a], left + place[a]], cell[a]
        if own == own:
            square = np.int64(weight[a]) * np.int64(weight[a])
            total[one, one] -= square * np.int64(np.rint(own * np.float32(scale)))
            if len(known) > 0:
                known[one, one] -= square


def blocks_of(n_rows: int, side: int = SIDE) -> Iterator[tuple[int, int]]:
    """Yield (row block, column block) of the upper triangle of a matrix."""
    n_blocks = -(-n_rows // side)
    return ((a, b) for a in range(n_blocks) for b in range(a, n_blocks))


def square_sums(cell, n_cells, z, rows, weights, scale, self_pairs, has_unknown) -> MatrixSums:
    """Sums over all pairs of ``rows`` (k,) int64, whose cells are ``cell`` (k,), of z (n, n)."""
    n, sums = len(z), no_sums(n_cells, has_unknown)
    votes = votes_of(rows, cell, weights, n)
    blocks = [votes.of(block) for block in range(len(votes.begin) - 1)]
    for a, b in blocks_of(n):
        width = min(SIDE, n - b * SIDE)
        corner = a * SIDE, b * SIDE
        add_block(z, corner, width, blocks[a], blocks[b], scale, self_pairs, sums)
    return all_pairs(sums, votes, self_pairs)


def all_pairs(sums: SquareSums, votes: Votes, self_pairs: bool) -> MatrixSums:
    """Bring the sums over all blocks into a triangle, and count the pairs where all are known."""
    n_cells = len(sums.total)
    counts = np.zeros((2, n_cells), np.int64)
    np.add.at(counts[0], votes.cell, votes.weight)
    if not self_pairs:
        np.add.at(counts[1], votes.cell, votes.weight.astype(np.int64) ** 2)
    found = MatrixSums(*np.empty((2, n_cells * (n_cells + 1) // 2), np.int64))
    _fold(*sums, *counts, *found)
    return found


@jit
def _fold(square, known_square, drawn, selves, total, known):
    for i in range(len(square)):
        for j in range(i + 1):
            at = i * (i + 1) // 2 + j
            total[at] = square[i, i] if i == j else (square[i, j] + square[j, i]) // 2
            if len(known_square) > 0:
                both = known_square[i, j] + known_square[j, i]
                known[at] = known_square[i, i] if i == j else both // 2
            else:
                known[at] = drawn[i] * drawn[j] - (selves[i] if i == j else 0)
