"""From parameters to a recipe: what words and shares stand for, and what is refused."""

import numpy as np
import pytest
from small_forests import NOTIONS, bits, example, forest_of, plane, points

from dforest.errors import SpecError
from dforest.estimators.recipes import check_continues, recipe_of
from dforest.methods.model import Forest


@pytest.mark.parametrize(
    ("asked", "p", "found"),
    [("sqrt", 16, 4), ("sqrt", 17, 4), ("sqrt", 1, 1), ("log2", 16, 4), ("log2", 1, 1),
     (None, 7, 7), (3, 7, 3), (0.5, 8, 4), (1.0, 7, 7), (0.01, 7, 1), (np.int64(2), 7, 2)],
)  # fmt: skip
def test_max_features__are_a_number_of_columns(asked, p, found):
    assert recipe_of(forest_of(max_features=asked), "graph", 10, p).max_features == found


def test_shares__are_of_the_rows_a_tree_draws():
    forest = forest_of(max_samples=0.5, min_samples_leaf=0.1, min_samples_split=0.3)
    recipe = recipe_of(forest, "graph", 200, 3)
    found = recipe.n_draws, recipe.min_samples_leaf, recipe.min_samples_split
    assert found == (100, 10, 30)


@pytest.mark.parametrize(
    ("pool", "found", "draws"), [(None, None, 50), (20, 20, 20), (50, None, 50), (99, None, 50)]
)
def test_pool__bounds_what_a_tree_draws(pool, found, draws):
    recipe = recipe_of(forest_of(pool_size=pool), "graph", 50, 3)
    assert (recipe.pool_size, recipe.n_draws) == (found, draws)


def test_bootstrap__may_draw_more_than_there_are():
    assert recipe_of(forest_of(max_samples=70), "graph", 50, 3).n_draws == 70


def test_continues__only_with_more_trees_of_the_same_recipe():
    nothing = np.empty(0, np.int64), np.empty((50, 0), np.int32)
    recipe = recipe_of(forest_of(n_estimators=8), "graph", 50, 3)
    old = Forest(recipe, 50, 3, [None] * 8, [], "graph", *nothing)

    def goes_on(n=50, p=3, **changes):
        forest = forest_of(**changes)
        check_continues(old, recipe_of(forest, "graph", n, p, old), n, p, forest.random_state)

    goes_on(n_estimators=8)
    goes_on(n_estimators=9)
    goes_on(n_estimators=9, random_state=None)  # the seed is that of the last fit
    with pytest.raises(SpecError, match="n_estimators=7 is below the 8 trees"):
        goes_on(n_estimators=7)
    for change in ({"random_state": 5}, {"max_depth": 4}, {"n": 51}, {"p": 4}):
        with pytest.raises(SpecError, match="has changed; set warm_start=False"):
            goes_on(**{"n_estimators": 9} | change)


def test_flags__may_be_of_numpy():
    forest = forest_of(self_pairs=np.bool_(False), bootstrap=np.bool_(True))
    recipe = recipe_of(forest, "graph", 50, 3)
    assert (recipe.self_pairs, recipe.bootstrap) == (False, True)


WRONG = {
    "min_samples_leaf": [22.0, 1.5, 0, -1, "5", None, True, np.nan, [3]],
    "min_samples_split": [22.0, 1, 0, "5", None],
    "min_impurity_decrease": [-0.1, np.nan, np.inf, "0", None],
    "n_estimators": [0, 2.0, "10", None, True],
    "max_samples": [0, -1, 1.5, "all", 0.0, 10**12],
    "max_features": [0, 3, 1.5, "all", 0.0],
    "max_depth": [0, 1.5, "3", 2**70],
    "max_leaf_nodes": [1, 0, 2.5],
    "max_split_rows": [0, 1.5, 10**30],
    "max_bins": [0, 1, 2.5],
    "projections": ["oblique", None],
    "leaf_rows": ["oob", None],
    "weighting": ["kerf", None],
    "bootstrap": [1, "yes", None],
    "self_pairs": [0, "no"],
    "pool_size": [0, 0.5, "40"],
    "table_budget": [0, 1e9],
    "n_jobs": [0, 1.5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_parameters__of_wrong_type_or_range_are_refused_by_name(name, value):
    X, z = plane()
    with pytest.raises(SpecError, match=name):
        forest_of(**{name: value}).fit(X, z)


def test_parameters__a_bad_one_leaves_the_fitted_forest_as_it_was():
    X, z = plane()
    forest = forest_of().fit(X, z)
    before = bits(forest)
    with pytest.raises(SpecError):
        forest.set_params(min_samples_leaf="5").fit(X, z)
    assert bits(forest) == before


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("leaf", [2, 7, 0.2])
def test_min_samples_leaf__holds_in_every_leaf(notion, leaf):
    X = points(60)
    forest = forest_of(notion, min_samples_leaf=leaf).fit(X, example(notion, X)[0])
    least = round(leaf * 60) if leaf < 1 else leaf
    assert min(tree.weight[tree.right < 0].min() for tree in forest._forest.trees) >= least
    assert forest.n_leaves_.max() > 1


def test_out_of_bag_leaves__need_rows_that_are_out_of_bag():
    X, z = plane()
    with pytest.raises(SpecError, match="set bootstrap=True or max_samples=0.5"):
        forest_of(leaf_rows="out_of_bag", bootstrap=False).fit(X, z)
    with pytest.raises(SpecError, match="drew all 1 rows"):
        forest_of(leaf_rows="out_of_bag").fit([[1.0]], [[0.0]])
