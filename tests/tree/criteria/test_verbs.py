"""Every criterion is a mean pairwise distance: its verbs against pairs added one by one."""

import naive
import numpy as np
import pytest

from dforest.tree.criteria import Node, accuracy, pair_sums, part, settled, start, take
from dforest.tree.criteria.verbs import order_of, part_rows
from tree import cases


def check_sums(crit, node, rows, z, w, rng):
    """Assert the sums on both sides of every cut of some random columns of a node."""
    k, m = len(rows), 5
    ranks, n_ranks = rng.integers(0, m, (3, k)).astype(np.int32), np.array([m, m, m])
    left, right, count = np.full((3, 3, m + 2), np.nan)
    weights = np.zeros(node.hi)
    weights[node.lo :] = w[rows]
    pair_sums(crit, weights, node, ranks, n_ranks, left, right, count)
    filled = naive.filled(z[np.ix_(rows, rows)], w[rows])
    near = 1e-6 * naive.pair_sums(abs(filled), w[rows], w[rows])[0]
    for c in range(3):
        for r in range(m):
            goes_left = ranks[c] <= r
            for got, side in ((left, w[rows] * goes_left), (right, w[rows] * ~goes_left)):
                assert abs(got[c, r] - naive.pair_sums(filled, side, side)[0]) <= near
            assert count[c, r] == (w[rows] * goes_left).sum()


@pytest.mark.parametrize("kind", cases.KINDS)
def test_pair_sums__are_sums_over_pairs_at_the_root_and_at_every_part(kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        crit, z = cases.make(rng, kind, 24)
        rows, w = np.sort(rng.choice(24, 18, replace=False)), rng.integers(1, 51, 24).astype(float)
        sub = take(crit, rows)
        root = Node(0, 18, start(sub))
        check_sums(sub, root, rows, z, w, rng)
        goes_left = rng.random(18) < 0.4
        left, right = part(sub, w[rows], root, goes_left)
        parted, middle = np.concatenate([rows[goes_left], rows[~goes_left]]), goes_left.sum()
        for node in (Node(0, middle, left), Node(middle, 18, right)):
            here = parted[node.lo : node.hi]
            check_sums(sub, node, here, z, w, rng)


@pytest.mark.parametrize("kind", ["indicator", "half_squared", "absolute"])
def test_settled__says_when_all_responses_are_equal(kind):
    crit, _ = cases.make(np.random.default_rng(0), kind, 12)
    one = take(crit, np.array([4, 4, 4]))
    assert settled(one, Node(0, 3, start(one)))
    every = take(crit, np.arange(12))
    assert not settled(every, Node(0, 12, start(every)))


def test_accuracy__is_lower_where_unknown_pairs_count_as_a_mean():
    rng = np.random.default_rng(1)
    by_kind = {kind: accuracy(cases.make(rng, kind, 12)[0]) for kind in cases.KINDS}
    filled = {by_kind.pop("unknown"), by_kind.pop("pairs")}
    assert len(filled) == len(set(by_kind.values())) == 1
    assert filled.pop() > max(by_kind.values())


def test_part_rows__keeps_the_order_on_both_sides():
    values = np.arange(10)
    part_rows(values, 2, 8, np.array([False, True, False, True, True, False]))
    assert values.tolist() == [0, 1, 3, 5, 6, 2, 4, 7, 8, 9]


def test_order_of__is_a_stable_sort():
    ranks = np.random.default_rng(2).integers(0, 9, 200).astype(np.int32)
    np.testing.assert_array_equal(order_of(ranks, 9), np.argsort(ranks, kind="stable"))
