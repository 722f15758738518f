"""Slow, obvious twins of the fast code, from the equations. They import nothing from dforest.

X (n, p) features; z (n, n) distances, NaN where unknown; w (n,) whole row weights, how often a tree
drew each row: 0 is out of bag; the w_i^2 pairs that copies of row i form among themselves are self
pairs, worth z_ii. Equations are numbered as in the SMERF paper.
"""

import math
from typing import NamedTuple

import numpy as np

TIE = 1e-12  # gains that differ by less, relatively, are equal


def indicator(labels):
    """1 where the classes differ, else 0: equation (1) becomes the Gini criterion."""
    labels = np.asarray(labels)
    return (labels[:, None] != labels).astype(float)


def half_squared(y):
    """Half the squared distance of responses (n,) or (n, q): the variance criterion."""
    y = np.asarray(y, float).reshape(len(y), -1)
    return ((y[:, None] - y) ** 2).sum(axis=2) / 2


def absolute(y):
    """|y - y'| of responses (n,)."""
    y = np.asarray(y, float)
    return abs(y[:, None] - y)


def graph(weights, far=1.0):
    """A graph given as a dense symmetric (n, n) matrix: far - w, and 0 on the diagonal."""
    return np.where(np.eye(len(weights)), 0.0, far - np.asarray(weights, float))


def pairs(i, j, z, n):
    """A matrix that knows nothing but the listed pairs."""
    known = np.full((n, n), np.nan)
    known[i, j] = known[j, i] = z
    return known


def pair_sums(z, wa, wb, self_pairs=True):
    """Sum of z over the known pairs between two weighted sets of rows, and their number."""
    w = np.outer(wa, wb).astype(float)
    if not self_pairs:
        np.fill_diagonal(w, 0.0)
    known = ~np.isnan(z)
    return (w[known] * z[known]).sum(), w[known].sum()


def mean_distance(z, w):
    """The paper's I, self pairs included. z has no unknown pairs."""
    return pair_sums(z, w, w)[0] / w.sum() ** 2


def filled(z, w):
    """z with unknown pairs counted as the mean of the node's known off-diagonal ones, or as 0."""
    total, count = pair_sums(z, w, w, self_pairs=False)
    return np.where(np.isnan(z), total / count if count else 0.0, z)


def gain_of(z, w, is_left):
    """Equation (1) for one way to part a node; z has no unknown pairs."""
    sides = w, w * is_left, w * ~is_left
    whole, left, right = (side.sum() * mean_distance(z, side) for side in sides)
    return whole - left - right


def cuts(x, z, w, min_rows=1):
    """All allowed cuts of one column in a node: list of (gain, threshold), lowest cut first.

    Thresholds are midpoints of neighbouring distinct values of the node's rows (weight > 0), and
    both sides keep at least ``min_rows``, counted as sums of weights.
    """
    z, values, found = filled(z, w), np.unique(x[w > 0]), []
    for low, high in zip(values[:-1], values[1:], strict=True):
        middle = low + (high - low) / 2
        threshold = middle if middle < high else low  # neighbouring floats have no middle
        is_left = x <= threshold
        if min(w[is_left].sum(), w[~is_left].sum()) >= min_rows:
            found.append((gain_of(z, w, is_left), threshold))
    return found


class Node(NamedTuple):
    """A tree is a list of nodes: the root, then all of its left side, then its right side."""

    parent: int  # number of the parent; the root's is 0, itself
    is_left: bool  # which child of the parent this is
    feature: int = -1  # -1 at a leaf
    threshold: float = np.nan  # left when x <= threshold
    gain: float = np.nan


def best_cut(X, z, w, min_rows=1):
    """Best of all cuts: (gain, feature, threshold), or None without a positive gain.

    Ties go to the first feature, then to the lowest cut.
    """
    found = [(g, f, t) for f in range(X.shape[1]) for g, t in cuts(X[:, f], z, w, min_rows)]
    best = max((gain for gain, _, _ in found), default=0.0)
    if best <= TIE * w.sum() * mean_distance(abs(filled(z, w)), w):  # zero but for rounding
        return None
    return next(cut for cut in found if cut[0] >= best * (1 - TIE))


def grow(X, z, w=None, min_samples_leaf=1, max_depth=np.inf):
    """Grow a tree by exhaustive search over all features, in the order of the columns of X."""
    X, tree = np.asarray(X, float), []
    w = np.ones(len(X), int) if w is None else np.asarray(w)

    def add(parent, is_left, w, depth):
        here = len(tree)
        best = best_cut(X, z, w, min_samples_leaf) if depth < max_depth else None
        if best is None:
            tree.append(Node(parent, is_left))
            return
        gain, feature, threshold = best
        tree.append(Node(parent, is_left, feature, threshold, gain))
        goes_left = X[:, feature] <= threshold
        add(here, True, w * goes_left, depth + 1)
        add(here, False, w * ~goes_left, depth + 1)

    add(0, True, w, 0)
    return tree


def below(tree, X):
    """(m, n) bool: which rows pass through each node."""
    X, through = np.asarray(X, float), [np.ones(len(X), bool)]
    for node in tree[1:]:
        top = tree[node.parent]
        through.append(
            through[node.parent] & ((X[:, top.feature] <= top.threshold) == node.is_left)
        )
    return np.array(through)


def leaves(tree):
    """Node numbers of the leaves, from left to right."""
    return [number for number, node in enumerate(tree) if node.feature < 0]


def apply(tree, X):
    """(n,) the leaf of each row, leaves counted from left to right."""
    return below(tree, X)[leaves(tree)].argmax(axis=0)


class Table(NamedTuple):
    sums: np.ndarray  # (L, L) sum of z over known pairs of voting rows
    counts: np.ndarray  # (L, L) their number
    mean: np.ndarray  # (L, L) equation (2), by the fallback where counts are 0


def leaf_table(tree, X, z, w=None, self_pairs=True):
    """Equation (2) with the rows of X, weighted by w, as voters: in bag, out of bag, or new rows.

    A pair of leaves without a known z takes the mean of its parents' pair, both lifted together
    (over all voters below the two), and so on; the root pair is the last. NaN if nothing is known.
    """
    w = np.ones(len(z), int) if w is None else np.asarray(w)
    rows, ends = below(tree, X) * w, leaves(tree)
    sums, counts, mean = np.full((3, len(ends), len(ends)), np.nan)
    for a, b in np.ndindex(len(ends), len(ends)):
        top, side = ends[a], ends[b]
        sums[a, b], counts[a, b] = total, count = pair_sums(z, rows[top], rows[side], self_pairs)
        while count == 0 and (top, side) != (0, 0):
            top, side = tree[top].parent, tree[side].parent
            total, count = pair_sums(z, rows[top], rows[side], self_pairs)
        mean[a, b] = total / count if count else np.nan
    return Table(sums, counts, mean)


def forest_pairwise(trees, tables, XA, XB, weighting="tree", voting=None):
    """Learned distances (a, b): equation (3), or one ratio over the forest with "kernel".

    ``voting`` (T, a, b) bool leaves trees out pair by pair; NaN where no tree votes. With "kernel",
    a pair that no voting tree has a known z for takes the mean of the trees' fallbacks.
    """
    voting = np.ones((len(trees), len(XA), len(XB)), bool) if voting is None else voting
    sums, counts, means = np.zeros((3, len(XA), len(XB)))
    for tree, table, votes in zip(trees, tables, voting, strict=True):
        seats = np.ix_(apply(tree, XA), apply(tree, XB))
        sums += np.where(votes, table.sums[seats], 0)
        counts += np.where(votes, table.counts[seats], 0)
        means += np.where(votes, table.mean[seats], 0)
    with np.errstate(invalid="ignore"):  # 0 / 0 where no tree votes
        by_tree = means / voting.sum(axis=0)
        return np.where(counts > 0, sums / counts, by_tree) if weighting == "kernel" else by_tree


def oob_voting(bags, trees="both"):
    """(T, n, n) bool from weights (T, n): trees that have both, or either, row out of bag."""
    out = np.asarray(bags) == 0
    join = {"both": np.logical_and, "either": np.logical_or}[trees]
    return join(out[:, :, None], out[:, None, :])


# What leaves predict ------------------------------------------------------------------------------


def ballot(tree, X, w, x):
    """Whose votes one query ``x`` gets from a tree: shares (n,), and the votes in its own leaf.

    Rows of X vote w times. An empty leaf asks its parent, and so on.
    """
    own = below(tree, x[None])[:, 0]
    path = [node for node in range(len(tree)) if own[node]]  # from the root down
    votes = [below(tree, X)[node] * w for node in path]
    told = next(some for some in reversed(votes) if some.sum() > 0)
    return told / told.sum(), votes[-1].sum()


def vote(shares, y, kind):
    """The answer nearest to y, rows counting by ``shares`` (n,): means (q,), or a median (1,)."""
    if kind != "absolute":
        return shares @ y.reshape(len(y), -1)
    order = np.argsort(y, kind="stable")
    run = np.cumsum(shares[order])
    low = next(i for i, part in zip(order, run) if part >= 0.5 - 1e-12)
    high = next(i for i, part in zip(order, run) if part > 0.5 + 1e-12)
    return np.array([(y[low] + y[high]) / 2])


def forest_vote(trees, X, bags, y, x, kind, weighting, leave_out=None):
    """What a forest predicts for ``x``; bags (T, n) say how often each row votes in each tree.

    ``leave_out`` is a row whose votes do not count.
    """
    said, rows = [], []
    for tree, bag in zip(trees, bags, strict=True):
        w = np.array(bag, float)
        if leave_out is not None:
            w[leave_out] = 0
        shares, n_rows = ballot(tree, X, w, x)
        said.append(vote(shares, y, kind))
        rows.append(n_rows)
    if weighting == "kernel" and sum(rows) > 0:
        return np.average(said, axis=0, weights=rows)
    return np.mean(said, axis=0)


# Distances between vectors, pair by pair ---------------------------------------------------------


def minkowski(x, y, p=2, w=None):
    """(sum of w |x - y|^p)^(1/p)."""
    w = np.ones(len(x)) if w is None else w
    return math.fsum(w * abs(x - y) ** p) ** (1 / p)


def cosine(x, y):
    """1 - x.y / (|x| |y|)."""
    return 1 - math.fsum(x * y) / math.sqrt(math.fsum(x * x) * math.fsum(y * y))


VECTORS = {
    "euclidean": math.dist,
    "sqeuclidean": lambda x, y: math.fsum((x - y) ** 2),
    "minkowski": minkowski,
    "manhattan": lambda x, y: math.fsum(abs(x - y)),
    "chebyshev": lambda x, y: max(abs(x - y)),
    "cosine": cosine,
    "correlation": lambda x, y: cosine(x - math.fsum(x) / len(x), y - math.fsum(y) / len(y)),
    "hamming": lambda x, y: sum(x != y) / len(x),
}
