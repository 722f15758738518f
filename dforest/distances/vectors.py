"""Distances between vectors: one compiled sweep, and what each distance adds up.

A measure is a NamedTuple with two verbs, chosen by its class when numba compiles.

========= ====================================================================
add       the running total of a pair, and the gap of its next feature: the new total
finish    the distance that a pair's total gives
========= ====================================================================

Totals are float64 and features are added one by one in their order, so that the bits of a distance
depend on the two rows alone: not on the block, its neighbours, or which row comes first.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import fma, jit, overload

SIDE = 128  # rows of the blocks that stay in a core's own caches: of totals, and of turned features
DEPTH = 32  # features gone through at once: 128 of them are 32 KiB


class Squares(NamedTuple):
    """Sum of squared gaps over a divisor; with its root, if asked."""

    divisor: float
    is_rooted: bool


class Sizes(NamedTuple):
    """Sum of |gap|."""


class Largest(NamedTuple):
    """The largest |gap|."""


class Unequal(NamedTuple):
    """Share of features that differ."""

    n_features: float


class WeightedSizes(NamedTuple):
    """Sum of w |gap|."""

    weights: np.ndarray  # (p,) float64


class WeightedSquares(NamedTuple):
    """Root of the sum of w gap^2."""

    weights: np.ndarray  # (p,) float64


class Powers(NamedTuple):
    """(sum of w |gap|^exponent)^(1 / exponent)."""

    weights: np.ndarray  # (p,) float64
    exponent: float


class WholePowers(NamedTuple):
    """The same for an exponent of 1 to 7, multiplied out: SIMD, and some 20 times faster."""

    weights: np.ndarray  # (p,) float64
    exponent: int


def add(measure, total, gap, f):
    """New total of a pair whose feature ``f`` differs by ``gap``."""
    raise TypeError("for compiled code")


def finish(measure, total):
    """Distance of a pair by its total."""
    raise TypeError("for compiled code")


def _add_square(measure, total, gap, f):
    return fma(gap, gap, total)


def _add_size(measure, total, gap, f):
    return total + abs(gap)


def _add_largest(measure, total, gap, f):
    return abs(gap) if abs(gap) > total else total


def _add_unequal(measure, total, gap, f):
    return total + (1.0 if gap != 0.0 else 0.0)


def _add_weighted_size(measure, total, gap, f):
    return fma(measure.weights[f], abs(gap), total)


def _add_weighted_square(measure, total, gap, f):
    return fma(measure.weights[f] * gap, gap, total)


def _add_power(measure, total, gap, f):
    return fma(measure.weights[f], abs(gap) ** measure.exponent, total)


def _add_whole_power(measure, total, gap, f):
    square = gap * gap
    power = abs(gap) if measure.exponent & 1 else 1.0
    power *= square if measure.exponent & 2 else 1.0
    power *= square * square if measure.exponent & 4 else 1.0
    return fma(measure.weights[f], power, total)


def _as_it_is(measure, total):
    return total


def _rooted_if_asked(measure, total):
    part = total / measure.divisor
    return np.sqrt(part) if measure.is_rooted else part


VERBS = {
    Squares: (_add_square, _rooted_if_asked),
    Sizes: (_add_size, _as_it_is),
    Largest: (_add_largest, _as_it_is),
    Unequal: (_add_unequal, lambda measure, total: total / measure.n_features),
    WeightedSizes: (_add_weighted_size, _as_it_is),
    WeightedSquares: (_add_weighted_square, lambda measure, total: np.sqrt(total)),
    Powers: (_add_power, lambda measure, total: total ** (1.0 / measure.exponent)),
    WholePowers: (_add_whole_power, lambda measure, total: total ** (1.0 / measure.exponent)),
}
overload(add)(lambda measure, total, gap, f: VERBS[measure.instance_class][0])
overload(finish)(lambda measure, total: VERBS[measure.instance_class][1])


@jit
def sweep(measure, ones, others, out, left):
    """Write all distances of two blocks to ``out[:, left : left + b]``.

    ones (a, p) and others (b, p) are C-contiguous float64 and finite, out (a, >= left + b) float64.
    16 features take some 1.4 ns a pair, 128 features 8 ns (Euclidean).
    """
    a, p = ones.shape
    turned, totals = np.empty((p, SIDE)), np.empty((SIDE, SIDE))
    for start in range(0, len(others), SIDE):
        width = min(SIDE, len(others) - start)
        for j in range(width):
            for f in range(p):
                turned[f, j] = others[start + j, f]
        for top in range(0, a, SIDE):
            height = min(SIDE, a - top)
            totals[:] = 0.0
            for first in range(0, p, DEPTH):
                _gather(measure, ones[top : top + height], turned, first, width, totals)
            for i in range(height):
                for j in range(width):
                    out[top + i, left + start + j] = finish(measure, totals[i, j])


@jit
def _gather(measure, ones, turned, first, width, totals):
    """Add ``DEPTH`` features from ``first`` on to the totals of a block.

    The inner loops run over columns and are SIMD. They take two rows and four features at once, as
    they would else wait for loads: 1.4 times faster than one row at a time.
    """
    a, p = ones.shape
    last = min(first + DEPTH, p)
    fours, twos = last - (last - first) % 4, a - a % 2
    for i in range(0, twos, 2):
        x, z, row, below = ones[i], ones[i + 1], totals[i, :width], totals[i + 1, :width]
        for f in range(first, fours, 4):
            x0, x1, x2, x3 = x[f], x[f + 1], x[f + 2], x[f + 3]
            z0, z1, z2, z3 = z[f], z[f + 1], z[f + 2], z[f + 3]
            for j in range(width):
                y0, y1, y2, y3 = turned[f, j], turned[f + 1, j], turned[f + 2, j], turned[f + 3, j]
                total = add(measure, row[j], x0 - y0, f)
                total = add(measure, total, x1 - y1, f + 1)
                total = add(measure, total, x2 - y2, f + 2)
                row[j] = add(measure, total, x3 - y3, f + 3)
                total = add(measure, below[j], z0 - y0, f)
                total = add(measure, total, z1 - y1, f + 1)
                total = add(measure, total, z2 - y2, f + 2)
                below[j] = add(measure, total, z3 - y3, f + 3)
        for f in range(fours, last):
            for j in range(width):
                row[j] = add(measure, row[j], x[f] - turned[f, j], f)
                below[j] = add(measure, below[j], z[f] - turned[f, j], f)
    for i in range(twos, a):
        row = totals[i, :width]
        for f in range(first, last):
            for j in range(width):
                row[j] = add(measure, row[j], ones[i, f] - turned[f, j], f)


@jit
def unit_rows(rows, is_centred):
    """Rows divided by their length, (m, p) float64; less their own mean first, if centred.

    Of unit rows u and v, 1 - cosine(u, v) is half their squared distance. Computed so, it is
    exactly 0 for equal rows, never negative, and keeps its digits where rows are nearly parallel.
    A row without a direction (all zeros, or all equal where centred) comes back as NaN.
    """
    m, p = rows.shape
    out = np.empty((m, p))
    for i in range(m):
        low = high = rows[i, 0]
        mean = 0.0
        for f in range(p):
            low, high = min(low, rows[i, f]), max(high, rows[i, f])
            mean += rows[i, f]
        mean = mean / p if is_centred else 0.0
        largest = max(abs(low - mean), abs(high - mean))
        if (low == high and is_centred) or largest == 0.0:
            out[i] = np.nan
            continue
        square = 0.0
        for f in range(p):
            out[i, f] = (rows[i, f] - mean) / largest
            square = fma(out[i, f], out[i, f], square)
        length = np.sqrt(square)
        for f in range(p):
            out[i, f] /= length
    return out
