"""Many leaves with many: the same bits as one pair after the other."""

import numpy as np
import pytest
from hypothesis import given
from small_forests import NOTIONS, example, forest_of, points

from dforest.tree import leaves
from dforest.tree.grids import number, write_grid
from dforest.tree.layout import n_leaves
from tree import cases

CHOICES = [{}, {"leaf_rows": "out_of_bag", "self_pairs": False, "min_samples_leaf": 1}]


@pytest.mark.parametrize("choice", CHOICES, ids=["in_bag", "out_of_bag"])
@pytest.mark.parametrize("notion", NOTIONS)
@cases.some
@given(seed=cases.seeds)
def test_write_grid__writes_what_one_pair_after_the_other_gives(notion, choice, seed):
    rng, X = np.random.default_rng(seed), points(30, seed=seed)
    options = {"n_estimators": 1, "table_budget": int(rng.choice([2_000, 1 << 30])), **choice}
    forest = forest_of(notion, **options, random_state=seed).fit(X, example(notion, X)[0])
    tree, table = forest._forest.trees[0], forest._forest.tables[0]
    ones, others = (np.flatnonzero(rng.random(n_leaves(tree)) < 0.7) for _ in range(2))
    means, pairs = np.full((2, len(ones) + 1, len(others) + 2), 7.0, number(table))
    write_grid(table, ones, others, means, pairs)
    for found, expected in zip((means, pairs), leaves.grid(table, ones, others), strict=True):
        np.testing.assert_array_equal(found[:-1, 1:-1], expected)
        assert (found[:, 0] == 7).all()
        assert (found[-1] == 7).all()
    again = np.full_like(means, 7.0)
    write_grid(table, ones, others, again, pairs[:0])
    np.testing.assert_array_equal(again, means)
