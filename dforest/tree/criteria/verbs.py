"""What the engine asks of a notion of distance.

A criterion is a NamedTuple of arrays that hold a node's rows in node order, and six verbs. Numba
picks a verb's body by the criterion's class when it compiles, so the engine is written once.

========== ======================================================================================
take       the criterion of some rows alone, in their order (the only way data enter a node)
start      the root's ``own``: three whole numbers that mean something to the criterion
settled    whether no split of a node can gain anything
pair_sums  the sum of z over ordered pairs left and right of every cut, for several columns at once
accuracy   of those sums, relative; gains closer than that are equal
part       put the rows that go left first, the others behind; ``own`` of both children
========== ======================================================================================

A node is ``Node(lo, hi, own)``: its rows are ``lo:hi`` of the criterion's arrays. ``weights`` (n,)
float64 says how often each row was drawn, in node order.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit, overload

EXACT = 1e-12  # of sums in float64, or in whole numbers
FILLED = 1e-7  # of sums in which a mean stands for what is unknown


class Node(NamedTuple):
    """A node as criteria see it: rows ``lo:hi``, and three numbers of the criterion's own."""

    lo: int
    hi: int
    own: tuple[int, int, int]


def _verb(name, doc):
    """A function whose body is chosen by the class of its first argument."""
    bodies = {}

    def verb(crit, *args):
        return bodies[type(crit)](crit, *args)

    verb.__name__ = verb.__qualname__ = name
    verb.__doc__ = doc
    verb.bodies = bodies
    return verb


take = _verb("take", "``take(crit, rows)``: the criterion of ``rows`` (k,) int64, in that order.")
start = _verb("start", "``start(crit)``: the root's ``own``.")
settled = _verb("settled", "``settled(crit, node)``: True when no split of the node can gain.")
pair_sums = _verb(
    "pair_sums",
    """``pair_sums(crit, weights, node, ranks, n_ranks, left, right, count)``.

    ranks (C, k) int32 gives each of the node's k rows its place in each of C columns, rows of
    equal value sharing one; n_ranks (C,) says how many places a column has. Writes, for a cut
    after place r of column c: ``left[c, r]`` and ``right[c, r]``, the sums of z over ordered pairs
    (self pairs included) of drawn rows on either side, and ``count[c, r]``, the drawn rows left.
    """,
)
accuracy = _verb("accuracy", "``accuracy(crit)``: relative accuracy of `pair_sums`.")
part = _verb(
    "part",
    """``part(crit, weights, node, goes_left)`` -> ``own`` of the left child, of the right child.

    goes_left (k,) bool; ``weights`` still in the order from before the parting.
    """,
)

overload(take)(lambda crit, rows: take.bodies[crit.instance_class])
overload(start)(lambda crit: start.bodies[crit.instance_class])
overload(settled)(lambda crit, node: settled.bodies[crit.instance_class])
overload(pair_sums)(
    lambda crit, weights, node, ranks, n_ranks, left, right, count: pair_sums.bodies[
        crit.instance_class
    ]
)
overload(accuracy)(lambda crit: accuracy.bodies[crit.instance_class])
overload(part)(lambda crit, weights, node, goes_left: part.bodies[crit.instance_class])


def body(verb, cls):
    """Register the decorated function as what ``verb`` does for criteria of class ``cls``."""
    return lambda function: verb.bodies.setdefault(cls, function)


@jit
def part_rows(values, lo, hi, goes_left):
    """Stable partition of ``values[lo:hi]`` (any dimension): rows that go left first."""
    spare = values[lo:hi].copy()
    to_left = lo
    for i in range(hi - lo):
        if goes_left[i]:
            values[to_left] = spare[i]
            to_left += 1
    for i in range(hi - lo):
        if not goes_left[i]:
            values[to_left] = spare[i]
            to_left += 1


@jit
def order_of(ranks, n_ranks):
    """Rows in the order of one column, stable: ranks (k,) int32 -> order (k,) int64."""
    begin = np.zeros(n_ranks + 1, np.int64)
    for rank in ranks:
        begin[rank + 1] += 1
    for r in range(n_ranks):
        begin[r + 1] += begin[r]
    order = np.empty(len(ranks), np.int64)
    for i in range(len(ranks)):
        order[begin[ranks[i]]] = i
        begin[ranks[i]] += 1
    return order


@jit
def add_earlier(weight, before, total, own, c, rank, left, right):
    """Book one row's pairs in column c where they meet (left) and part (right), to `accumulate`.

    ``before``, ``total`` and ``own`` are the sums of z, weighted, over the rows earlier in the
    order, over all rows of the node, and over the row's own copies. A pair joins the left side at
    its later row and leaves the right side at its earlier one.
    """
    left[c, rank] += weight * (2.0 * before + own)
    right[c, rank] += weight * (2.0 * (total - before - own) + own)


@jit
def accumulate(left, right):
    """Turn booked pairs into sums: a running total from the left, one from the right."""
    run = 0.0
    for r in range(len(left)):
        run += left[r]
        left[r] = run
    run = 0.0
    for r in range(len(right) - 1, -1, -1):
        met, right[r] = right[r], run
        run += met


@jit
def count_rows(weights, node, ranks, count):
    """``count[r]``: drawn rows of places up to r in one column."""
    count[:] = 0.0
    for i in range(node.hi - node.lo):
        count[ranks[i]] += weights[node.lo + i]
    run = 0.0
    for r in range(len(count)):
        run += count[r]
        count[r] = run
