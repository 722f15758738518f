"""Means of many leaves with many others at once, read from a table the way that suits it.

`between_leaves` answers one pair. For all pairs of some leaves there is often a quicker way: rows
of a stored triangle are walked and not jumped to, a list is merged and not searched, what an other
leaf holds is looked up once. Both tell the same bits.
"""

import numpy as np

from dforest.jit import jit, overload
from dforest.tree.leaves.links import LinkTable
from dforest.tree.leaves.matrix import MatrixTable
from dforest.tree.leaves.responses import ClassTable, MomentTable
from dforest.tree.leaves.verbs import between_leaves

_bodies = {}


def _write(table, ones, others, means, pairs):
    """Do what `_body` registered for tables of this class, or go pair by pair."""


@overload(_write)
def _written(table, ones, others, means, pairs):
    return _bodies.get(table.instance_class, _one_by_one)


def _body(cls):
    return lambda function: _bodies.setdefault(cls, function)


@jit
def write_grid(table, ones, others, means, pairs):
    """Write means, and pairs where asked for, of leaves ``ones`` (a,) with leaves ``others`` (b,).

    Both ascending. means (>= a, >= 1 + b), and pairs of that shape or empty, are of the table's
    `number`; column 0 stays as it is.
    """
    _write(table, ones, others, means, pairs)


def _one_by_one(table, ones, others, means, pairs):
    for i in range(len(ones)):
        for j in range(len(others)):
            mean, known = between_leaves(table, ones[i], others[j])
            means[i, j + 1] = mean
            if pairs.size:
                pairs[i, j + 1] = known


@jit
def _read_triangle(values, ones, others, out):
    """Read cells ``ones`` with ``others`` from a lower triangle, along its rows."""
    for i in range(len(ones)):
        a = ones[i]
        row, line = out[i], values[a * (a + 1) // 2 : (a + 1) * (a + 2) // 2]
        for j in range(np.searchsorted(others, a, "right")):
            row[j + 1] = line[others[j]]
    for j in range(len(others)):
        b = others[j]
        line = values[b * (b + 1) // 2 : (b + 1) * (b + 2) // 2]
        for i in range(np.searchsorted(ones, b)):
            out[i, j + 1] = line[ones[i]]


@_body(MatrixTable)
def _(table, ones, others, means, pairs):
    mine, theirs = table.cell[ones].astype(np.int64), table.cell[others].astype(np.int64)
    _read_triangle(table.mean, mine, theirs, means)
    if pairs.size:
        _read_triangle(table.known, mine, theirs, pairs)


@_body(LinkTable)
def _(table, ones, others, means, pairs):
    weight, is_graph = table.weight[table.node], not np.isnan(table.far)
    for i in range(len(ones)):
        one = ones[i]
        at, end = table.indptr[one], table.indptr[one + 1]
        for j in range(len(others)):
            other = others[j]
            while at < end and table.other[at] < other:
                at += 1
            is_listed = at < end and table.other[at] == other
            apart = (table.total[at + 1] - table.total[at] if is_listed else 0) / table.scale
            known = np.float64(table.known[at + 1] - table.known[at] if is_listed else 0)
            if is_graph:
                known = weight[one] * weight[other]
                selves = table.selves[table.node[one]] if one == other else 0.0
                known -= 0.0 if table.self_pairs else selves
                apart += table.far * (known - selves if table.self_pairs else known)
            mean = apart / known if known > 0.0 else 0.0
            if known <= 0.0:
                mean, known = between_leaves(table, one, other)
            means[i, j + 1] = mean
            if pairs.size:
                pairs[i, j + 1] = known


@_body(ClassTable)
def _(table, ones, others, means, pairs):
    nodes = table.node[others]
    counts, weight = table.counts[nodes], table.weight[nodes]
    for i in range(len(ones)):
        a = table.node[ones[i]]
        mine, drawn = table.counts[a], table.weight[a]
        for j in range(len(others)):
            same = 0.0
            for label in range(len(mine)):
                same += mine[label] * counts[j, label]
            known = drawn * weight[j]
            total = known - same
            if a == nodes[j] and not table.self_pairs:
                known -= table.selves[a]
            mean = total / known if known > 0.0 else 0.0
            if known <= 0.0:
                mean, known = between_leaves(table, ones[i], others[j])
            means[i, j + 1] = mean
            if pairs.size:
                pairs[i, j + 1] = known


@_body(MomentTable)
def _(table, ones, others, means, pairs):
    nodes = table.node[others]
    centre, weight, variance = table.mean[nodes], table.weight[nodes], table.variance[nodes]
    for i in range(len(ones)):
        a = table.node[ones[i]]
        mine, drawn, spread = table.mean[a], table.weight[a], table.variance[a]
        for j in range(len(others)):
            apart = 0.0
            for q in range(len(mine)):
                step = mine[q] - centre[j, q]
                apart += step * step
            known = drawn * weight[j]
            total = 0.5 * (apart + (spread + variance[j])) * known
            if a == nodes[j] and not table.self_pairs:
                known -= table.selves[a]
            mean = total / known if known > 0.0 else 0.0
            if known <= 0.0:
                mean, known = between_leaves(table, ones[i], others[j])
            means[i, j + 1] = mean
            if pairs.size:
                pairs[i, j + 1] = known


def number(table) -> np.dtype:
    """Type of the table's means: as many bits as it keeps."""
    return np.dtype(np.float32 if isinstance(table, MatrixTable) else np.float64)
