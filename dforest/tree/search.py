"""Find a node's cut: draw columns, ask the criterion for its sums, and apply equation (1)."""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.seeds import draw_below
from dforest.tree.binning import between
from dforest.tree.candidates import add_axis_column, add_oblique_column, draw_terms, project
from dforest.tree.criteria import accuracy, pair_sums


class Limits(NamedTuple):
    """When to stop, and how hard to look."""

    min_leaf: float  # fewest drawn rows in a leaf
    min_split: float  # fewest drawn rows in a node that is split
    max_depth: int
    min_gain: float  # least equation (1)
    max_features: int  # candidates that are not constant in the node
    search_rows: int  # rows looked at in a larger node; 0 for all
    block_rows: int  # nodes up to this size are copied into a block
    oblique: bool


class Cut(NamedTuple):
    """What `search` found: go left when the column's value (or code) is at most ``mark``."""

    gain: float
    mark: float
    missing_left: bool
    saw_missing: bool  # else rows that are NaN go to the larger side
    contrast: float  # gain over what remains within the parts, a row: about 1 by chance alone


@jit
def best_cut(columns, c, min_leaf, tie, best):
    """The best cut of column ``c`` by equation (1), if it beats the cut ``best``.

    Gains closer than ``tie``, relative to what they are the difference of, are equal: the earlier
    column wins, then the lower cut.
    """
    last = columns.n_ranks[c] - 1
    left, right, count = columns.left[c], columns.right[c], columns.count[c]
    n, whole = count[last], left[last]
    for r in range(1 if columns.missing_left[c] else 0, last):
        n_left, n_right = count[r], n - count[r]
        if n_left < min_leaf or (r > 0 and n_left == count[r - 1]):
            continue
        if n_right < min_leaf:
            break
        parts = (whole / n, left[r] / n_left, right[r] / n_right)
        gain = parts[0] - parts[1] - parts[2]
        if gain > best.gain + tie * (abs(parts[0]) + abs(parts[1]) + abs(parts[2])):
            best = Cut(
                gain,
                columns.marks[c, r],
                columns.missing_left[c],
                columns.has_missing[c],
                gain * max(n - 2.0, 0.0) / max(abs(parts[1] + parts[2]), 1e-300),
            )
    return best


@jit
def search(table, member, crit, weights, node, key, limits, min_leaf, live, columns, terms, signs):
    """Look for a node's best cut among ``max_features`` drawn columns that are not constant.

    ``live`` (l,) are the features not yet known to be constant in the node; those that prove to be
    are set to -1. ``terms`` and ``signs`` (MAX_TERMS,) are written for the winner. Returns a `Cut`
    of gain 0 if nothing gains.
    """
    p, width = len(live), len(columns.n_ranks)
    tries = 4 * limits.max_features if limits.oblique else p
    order = np.arange(p)
    best = Cut(0.0, np.nan, False, False, 0.0)
    turn, found = 0, 0
    while turn < tries and found < limits.max_features:
        held = 0
        while turn < tries and found < limits.max_features and held + 2 <= width:
            if limits.oblique:
                draw_terms(key, turn, len(table.n_codes), columns.terms[held], columns.signs[held])
                added = add_oblique_column(table, member, columns, held)
            else:
                other = turn + draw_below(key, turn, p - turn)
                order[turn], order[other] = order[other], order[turn]
                added = add_axis_column(table, member, live[order[turn]], columns, held)
                if added == 0:
                    live[order[turn]] = -1
            turn += 1
            held += added
            found += added > 0
        pair_sums(
            crit,
            weights,
            node,
            columns.ranks[:held, : len(member)],
            columns.n_ranks[:held],
            columns.left,
            columns.right,
            columns.count,
        )
        for c in range(held):
            better = best_cut(columns, c, min_leaf, accuracy(crit), best)
            if better.gain > best.gain:
                best = better
                terms[:] = columns.terms[c]
                signs[:] = columns.signs[c]
    return best


@jit
def part_sides(table, member, weights, cut, terms, signs, oblique, goes_left):
    """Write which rows go left; the threshold, the side of NaN, and the drawn rows that go left."""
    most, least = -np.inf, np.inf  # greatest code or value left, least one right
    n_left, n_right, n_unknown = 0.0, 0.0, 0.0
    unknown = np.zeros(len(member), np.bool_)
    for i in range(len(member)):
        if oblique:
            value = project(table.values[member[i]], terms, signs)
            unknown[i] = np.isnan(value)
        else:
            code = table.codes[terms[0], member[i]]
            value, unknown[i] = np.float64(code), code == table.n_codes[terms[0]]
        goes_left[i] = value <= cut.mark
        if unknown[i]:
            n_unknown += weights[i]
        elif goes_left[i]:
            most = max(most, value)
            n_left += weights[i]
        else:
            least = min(least, value)
            n_right += weights[i]
    if not oblique:
        begin = table.offsets[terms[0]]
        most = table.high[begin + np.int64(most)]
        least = table.low[begin + np.int64(least)] if least < np.inf else np.inf
    threshold = between(most, least) if least < np.inf else np.inf
    missing_left = cut.missing_left if cut.saw_missing else n_left >= n_right
    if n_unknown > 0.0:
        for i in range(len(member)):
            goes_left[i] = missing_left if unknown[i] else goes_left[i]
        n_left += n_unknown if missing_left else 0.0
    return threshold, missing_left, n_left
