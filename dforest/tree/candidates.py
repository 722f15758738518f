"""Columns to cut: single features, or sparse sums of a few, drawn anew at every node.

A column gives each row of a node a rank; rows of equal value share one. A column with unknown
values becomes two: NaN behind every value, and NaN before every value, so that the larger gain
decides the side and criteria need not know.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.seeds import draw_below

MAX_TERMS = 4  # features added up in one oblique candidate, at most
SHORT = 64  # below this insertion sort beats radix sort


class Columns(NamedTuple):
    """Room for the columns of one search: C columns, k rows, at most r ranks each."""

    ranks: np.ndarray  # (C, k) int32
    n_ranks: np.ndarray  # (C,) int64
    marks: np.ndarray  # (C, r) float64: code (or value, if oblique) at each rank
    missing_left: np.ndarray  # (C,) bool: NaN holds rank 0
    has_missing: np.ndarray  # (C,) bool: some row is NaN
    terms: np.ndarray  # (C, MAX_TERMS) int32: features of the column, -1 beyond the last
    signs: np.ndarray  # (C, MAX_TERMS) float64
    left: np.ndarray  # (C, r) float64, what `pair_sums` writes
    right: np.ndarray  # (C, r) float64
    count: np.ndarray  # (C, r) float64


@jit
def make_columns(n_columns, n_rows, n_ranks):
    """Room for ``n_columns`` columns of ``n_rows`` rows and ``n_ranks`` ranks."""
    return Columns(
        np.empty((n_columns, n_rows), np.int32),
        np.empty(n_columns, np.int64),
        np.empty((n_columns, n_ranks)),
        np.empty(n_columns, np.bool_),
        np.empty(n_columns, np.bool_),
        np.full((n_columns, MAX_TERMS), -1, np.int32),
        np.ones((n_columns, MAX_TERMS)),
        np.empty((n_columns, n_ranks)),
        np.empty((n_columns, n_ranks)),
        np.empty((n_columns, n_ranks)),
    )


@jit
def order_codes(codes, span):
    """Order of whole numbers in [0, span): codes (k,) int64 -> order (k,) int64, stable."""
    k = len(codes)
    order = np.arange(k)
    if k <= SHORT:
        for i in range(1, k):
            j = i
            while j > 0 and codes[order[j - 1]] > codes[i]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
        return order
    spare, shift = np.empty(k, np.int64), 0
    while span > 0:
        begin = np.zeros(257, np.int64)
        for i in range(k):
            begin[((codes[i] >> shift) & 255) + 1] += 1
        for digit in range(256):
            begin[digit + 1] += begin[digit]
        for i in order:
            digit = (codes[i] >> shift) & 255
            spare[begin[digit]] = i
            begin[digit] += 1
        order, spare = spare, order
        shift += 8
        span >>= 8
    return order


@jit
def _add_unknown(columns, c, n, unknown, k):
    """Give NaN a rank behind all others, and make the twin column with NaN before all others."""
    ranks, twin = columns.ranks[c], columns.ranks[c + 1]
    for i in range(k):
        twin[i] = 0 if unknown[i] else ranks[i] + 1
        if unknown[i]:
            ranks[i] = n
    columns.n_ranks[c] = n + 1
    columns.n_ranks[c + 1] = n + 1
    columns.marks[c + 1, 1 : n + 1] = columns.marks[c, :n]
    columns.missing_left[c + 1] = True
    columns.has_missing[c + 1] = True
    columns.terms[c + 1] = columns.terms[c]
    columns.signs[c + 1] = columns.signs[c]
    return 2 if n > 1 else 1  # of one known value, the twin only mirrors its column


@jit
def add_axis_column(table, member, feature, columns, c):
    """Write column ``c`` for one feature; the number of columns written: 0 if it is constant.

    Most calls find a constant, so nothing is cut out of a matrix before that is known.
    """
    k, codes = len(member), table.codes
    unknown_code = table.n_codes[feature]
    least, most, n_unknown = unknown_code, np.int64(-1), 0
    for i in range(k):
        code = np.int64(codes[feature, member[i]])
        if code == unknown_code:
            n_unknown += 1
        else:
            least, most = min(least, code), max(most, code)
    if most < 0 or (least == most and n_unknown == 0):
        return 0
    columns.terms[c, 0] = feature
    columns.missing_left[c] = False
    columns.has_missing[c] = n_unknown > 0
    span = most - least + 1
    if span <= max(2 * k, 256):
        for i in range(k):
            columns.ranks[c, i] = np.int64(codes[feature, member[i]]) - least
        for r in range(span):
            columns.marks[c, r] = least + r
        n = span
    else:
        n = _rank_by_sorting(codes[feature], member, least, unknown_code, columns, c)
    columns.n_ranks[c] = n
    if n_unknown == 0:
        return 1
    unknown = np.empty(k, np.bool_)
    for i in range(k):
        unknown[i] = codes[feature, member[i]] == unknown_code
    return _add_unknown(columns, c, n, unknown, k)


@jit
def _rank_by_sorting(codes, member, least, unknown_code, columns, c):
    """Ranks of the codes that occur, where they are few among many; the number of ranks."""
    shifted = np.empty(len(member), np.int64)
    for i in range(len(member)):
        shifted[i] = np.int64(codes[member[i]]) - least
    n, last = 0, np.int64(-1)
    for i in order_codes(shifted, unknown_code - least):
        if shifted[i] + least == unknown_code:
            break
        if shifted[i] != last:
            last = shifted[i]
            columns.marks[c, n] = last + least
            n += 1
        columns.ranks[c, i] = n - 1
    return n


@jit
def add_oblique_column(table, member, columns, c):
    """Write column ``c`` for the terms and signs already there; as `add_axis_column`."""
    k = len(member)
    values, unknown, n_unknown = np.empty(k), np.empty(k, np.bool_), 0
    for i in range(k):
        values[i] = project(table.values[member[i]], columns.terms[c], columns.signs[c])
        unknown[i] = np.isnan(values[i])
        n_unknown += unknown[i]
    columns.missing_left[c] = False
    columns.has_missing[c] = n_unknown > 0
    n, last = 0, np.nan
    for i in np.argsort(values, kind="mergesort"):
        if unknown[i]:
            continue
        if n == 0 or values[i] > last:
            last = values[i]
            columns.marks[c, n] = last
            n += 1
        columns.ranks[c, i] = n - 1
    columns.n_ranks[c] = n
    if n == 0 or (n == 1 and n_unknown == 0):
        return 0
    return 1 if n_unknown == 0 else _add_unknown(columns, c, n, unknown, k)


@jit
def project(x, terms, signs):
    """Value of one oblique column at a row ``x`` (p,): the signed terms, added in their order."""
    value = 0.0
    for v in range(len(terms)):
        if terms[v] >= 0:
            value += signs[v] * x[terms[v]]
    return value


@jit
def draw_terms(key, turn, p, terms, signs):
    """Draw the terms of an oblique candidate: one to four different features, each with +-1."""
    size = 1 + draw_below(key, turn * 16, min(p, MAX_TERMS))
    terms[:] = -1
    signs[:] = 1.0
    got, draw = 0, 1
    while got < size:
        feature = draw_below(key, turn * 16 + draw, p)
        fresh = True
        for v in range(got):
            fresh = fresh and terms[v] != feature
        if fresh:
            terms[got] = feature
            signs[got] = 1.0 if draw_below(key, turn * 16 + 15 - got, 2) == 0 else -1.0
            got += 1
        draw += 1
