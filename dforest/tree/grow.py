"""The engine: grow one tree by equation (1) of SMERF, whatever the notion of distance.

A node's rows are searched for the cut that gains most, then parted. Nodes with at most
``block_rows`` rows are copied into a small block, features always and distances where it pays, and
the whole subtree grows inside it, in cache. Larger nodes read the whole table; with ``search_rows``
they are searched on that many of their rows, drawn by the node's own stream, and then all rows are
parted, so that a tree on distances costs O(n * search_rows) and not O(n^2). Where no drawn feature
tells more than chance on those rows, others are drawn: parting many rows by chance wastes them,
while exhaustive search would mostly have cut off a few.

Draws are keyed by the path from the root, never by order or place in memory.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.seeds import child_key, draw_below
from dforest.tree.binning import Table
from dforest.tree.candidates import MAX_TERMS, make_columns
from dforest.tree.criteria import Node, part, settled, start, take
from dforest.tree.criteria.verbs import part_rows
from dforest.tree.layout import Tree
from dforest.tree.search import Cut, Limits, part_sides, search

ROOM = 1 << 20  # numbers that the columns of one search may take, where more than one would fit

TELLING = 10.0  # contrast beyond chance: some 15 independent cuts reach it once in 50 nodes
REDRAWS = 8  # times that a sampled node draws features, while none tells more than chance


class Frame(NamedTuple):
    """A node waiting to be grown."""

    lo: int
    hi: int
    own: tuple[int, int, int]
    depth: int
    key: int
    parent: int  # whose right child it is, or -1
    live: np.ndarray  # (l,) int32 features that are not known to be constant in it


class Growing(NamedTuple):
    """Arrays of the tree so far, with room for more; ``size`` holds (nodes, terms, projections)."""

    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    size: np.ndarray


@jit
def _room_for(n_rows, oblique):
    m = 2 * n_rows - 1
    k = n_rows if oblique else 1
    return Growing(
        np.full(m, -1, np.int32),
        np.full(m, np.nan),
        np.full(m, -1, np.int32),
        np.zeros(m, np.bool_),
        np.zeros(m),
        np.zeros(m),
        np.zeros(k + 1, np.int64),
        np.empty(k * MAX_TERMS, np.int32),
        np.empty(k * MAX_TERMS),
        np.zeros(3, np.int64),
    )


@jit
def _open(out, weight, parent):
    """Number the next node in preorder."""
    node = out.size[0]
    out.weight[node] = weight
    if parent >= 0:
        out.right[parent] = node
    out.size[0] += 1
    return node


@jit
def _write_split(out, node, gain, threshold, missing_left, terms, signs, oblique):
    out.gain[node], out.threshold[node], out.missing_left[node] = gain, threshold, missing_left
    if not oblique:
        out.feature[node] = terms[0]
        return
    out.feature[node] = -2 - out.size[2]
    for v in range(MAX_TERMS):
        if terms[v] >= 0:
            out.columns[out.size[1]], out.signs[out.size[1]] = terms[v], signs[v]
            out.size[1] += 1
    out.size[2] += 1
    out.starts[out.size[2]] = out.size[1]


@jit
def _columns_for(table, n_rows, limits):
    width = max(2, min(2 * limits.max_features, 2 * (ROOM // (2 * n_rows))))
    most = n_rows + 2 if limits.oblique else min(table.n_codes.max() + 2, max(2 * n_rows, 256) + 2)
    return make_columns(width, n_rows, most)


@jit
def _stays_leaf(weights, depth, limits):
    n = weights.sum()
    return depth >= limits.max_depth or n < limits.min_split or n < 2.0 * limits.min_leaf


@jit
def _grow_block(out, table, crit, weights, frame, limits):
    """Grow the subtree of ``frame`` inside a block: ``crit`` and ``weights`` hold its rows only."""
    n = len(weights)
    member = np.arange(n)
    columns, goes_left = _columns_for(table, n, limits), np.empty(n, np.bool_)
    terms, signs = np.empty(MAX_TERMS, np.int32), np.empty(MAX_TERMS)
    stack = [Frame(0, n, start(crit), frame.depth, frame.key, frame.parent, frame.live)]
    while stack:
        lo, hi, own, depth, key, parent, live = stack.pop()
        node, w = _open(out, weights[lo:hi].sum(), parent), weights[lo:hi]
        here = Node(lo, hi, own)
        if _stays_leaf(w, depth, limits) or settled(crit, here):
            continue
        live = live.copy()
        cut = search(
            table, member[lo:hi], crit, weights, here, key, limits, limits.min_leaf, live, columns,
            terms, signs,
        )  # fmt: skip
        if cut.gain <= 0.0 or cut.gain < limits.min_gain:
            continue
        goes = goes_left[: hi - lo]
        threshold, missing_left, _ = part_sides(
            table, member[lo:hi], w, cut, terms, signs, limits.oblique, goes
        )
        _write_split(out, node, cut.gain, threshold, missing_left, terms, signs, limits.oblique)
        left, right = part(crit, weights, here, goes)
        part_rows(member, lo, hi, goes)
        part_rows(weights, lo, hi, goes)
        middle, live = lo + goes.sum(), live[live >= 0]
        stack.append(Frame(middle, hi, right, depth + 1, child_key(key, 1), node, live))
        stack.append(Frame(lo, middle, left, depth + 1, child_key(key, 0), -1, live))


@jit
def _block_of(table, rows):
    """The table of a few rows, in a block of its own."""
    p = len(table.n_codes)
    codes = np.empty((p, len(rows)), table.codes.dtype)
    if len(table.by_row):
        for i in range(len(rows)):
            for j in range(p):
                codes[j, i] = table.by_row[rows[i], j]
    else:
        for j in range(p):
            for i in range(len(rows)):
                codes[j, i] = table.codes[j, rows[i]]
    values = table.values[rows] if len(table.values) else table.values
    return Table(
        codes, table.n_codes, table.low, table.high, table.offsets, table.by_row[:0], values
    )


@jit
def _draw_rows(key, lo, hi, wanted):
    """Draw ``wanted`` different places of ``lo:hi``, ascending, by the node's own stream."""
    places = np.arange(lo, hi)
    stream = child_key(key, 2)
    for turn in range(wanted):
        other = turn + draw_below(stream, turn, len(places) - turn)
        places[turn], places[other] = places[other], places[turn]
    return np.sort(places[:wanted])


@jit
def _rows_to_search(key, lo, hi, weights, n, limits):
    """Places to search of a node of ``n`` drawn rows, and the fewest of them allowed in a leaf."""
    if not 0 < limits.search_rows < hi - lo:
        return np.arange(lo, hi), limits.min_leaf
    picked, min_leaf = _draw_rows(key, lo, hi, limits.search_rows), limits.min_leaf
    # rows searched are rows parted, so an unscaled limit holds for the whole node, too
    seen = weights[picked].sum()
    return picked, min_leaf if 4.0 * min_leaf <= seen else np.ceil(min_leaf * seen / n)


@jit
def _grow(table, crit, rows, weights, key, limits):
    """Grow from the root: large nodes here, small ones in blocks. ``rows`` and ``weights`` part."""
    out = _room_for(len(rows), limits.oblique)
    goes_left = np.empty(len(rows), np.bool_)
    terms, signs = np.empty(MAX_TERMS, np.int32), np.empty(MAX_TERMS)
    found, found_signs = terms.copy(), signs.copy()
    every = np.arange(len(table.n_codes)).astype(np.int32)
    stack = [Frame(0, len(rows), (0, 0, 0), 0, key, -1, every)]
    while stack:
        frame = stack.pop()
        lo, hi, own, depth, key, parent, live = frame
        w = weights[lo:hi]
        if hi - lo <= limits.block_rows:
            block = _block_of(table, rows[lo:hi])
            _grow_block(out, block, take(crit, rows[lo:hi]), w.copy(), frame, limits)
            continue
        node, n = _open(out, w.sum(), parent), w.sum()
        if _stays_leaf(w, depth, limits):
            continue
        picked, min_leaf = _rows_to_search(key, lo, hi, weights, n, limits)
        sub = take(crit, rows[picked])
        here = Node(0, len(picked), start(sub))
        if settled(sub, here):
            continue
        is_sampled, tried = len(picked) < hi - lo, live.copy()
        columns = _columns_for(table, len(picked), limits)
        cut, draw = Cut(0.0, np.nan, False, False, 0.0), key
        for _ in range(REDRAWS if is_sampled else 1):
            other = search(
                table, rows[picked], sub, weights[picked], here, draw, limits, min_leaf, tried,
                columns, found, found_signs,
            )  # fmt: skip
            if other.gain > cut.gain:
                cut, terms[:], signs[:] = other, found, found_signs
            tried = tried[tried >= 0]
            if cut.contrast >= TELLING or len(tried) <= limits.max_features:
                break
            draw = child_key(draw, 3)
        live = live if is_sampled else tried  # what is constant in some rows may vary in others
        gain = cut.gain * (n / weights[picked].sum())  # equation (1) grows with the rows
        if gain <= 0.0 or gain < limits.min_gain:
            continue
        goes = goes_left[: hi - lo]
        threshold, missing_left, n_left = part_sides(
            table, rows[lo:hi], w, cut, terms, signs, limits.oblique, goes
        )
        if n_left < limits.min_leaf or n - n_left < limits.min_leaf:
            continue
        _write_split(out, node, gain, threshold, missing_left, terms, signs, limits.oblique)
        part_rows(rows, lo, hi, goes)
        part_rows(weights, lo, hi, goes)
        middle = lo + goes.sum()
        stack.append(Frame(middle, hi, own, depth + 1, child_key(key, 1), node, live))
        stack.append(Frame(lo, middle, own, depth + 1, child_key(key, 0), -1, live))
    return out


def _read_only(record):
    """The record with views that cannot be written: one compiled form for arrays and mapped files.

    Room to write in is the exception.
    """
    fields = record._asdict()
    for name, value in fields.items():
        if isinstance(value, np.ndarray) and name != "own":
            fields[name] = value.view(np.ndarray)
            fields[name].flags.writeable = False
    return type(record)(**fields)


def grow(table: Table, crit, rows, weights, key: int, limits: Limits) -> Tree:
    """Grow one tree.

    Parameters
    ----------
    table : Table
        Features of all n rows.
    crit : criterion of all n rows
        One of `dforest.tree.criteria`.
    rows, weights : (k,) int64, (k,) float64
        The tree's own rows, ascending, and how often each was drawn.
    key : int
        Of the tree's stream, below 2**64.
    """
    table, crit = _read_only(table), _read_only(crit)
    out = _grow(table, crit, rows.copy(), weights.astype(np.float64), np.uint64(key), limits)
    m, n_terms, k = out.size
    return Tree(
        *(array[:m].copy() for array in out[:6]),
        out.starts[: k + 1].copy(),
        out.columns[:n_terms].copy(),
        out.signs[:n_terms].copy(),
    )
