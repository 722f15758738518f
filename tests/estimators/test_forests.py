"""`DistanceForest`: scikit-learn's manners, every kind of input, every answer's shape."""

import pickle

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_forests import NOTIONS, bags, bits, example, forest_of, parameters_of, plane, points

import dforest
from dforest import DistanceForest, Graph, MatrixStore, Pairs
from dforest.errors import DataError, NotFittedError, SpecError
from dforest.methods.scores import r_squared


def test_parameters__are_what_they_were_given_after_fitting():
    forest = forest_of(max_features=2, random_state=np.random.RandomState(0))
    before = forest.get_params()
    X, z = plane()
    forest.fit(X, z)
    assert forest.get_params() == before
    assert set(before) == set(DistanceForest().get_params())
    assert "min_samples_leaf=3" in repr(forest)


def test_clone__is_unfitted_and_fits_to_the_same_bits():
    X, z = plane()
    forest = forest_of().fit(X, z)
    twin = clone(forest)
    assert twin.get_params() == forest.get_params()
    with pytest.raises(NotFittedError, match="call fit, or dforest.load"):
        twin.pairwise(X)
    assert bits(twin.fit(X, z)) == bits(forest)


@pytest.mark.parametrize("call", ["apply", "transform", "pairwise", "kneighbors", "save"])
def test_answers__before_fit_say_so_in_scikit_learns_words(call, tmp_path):
    argument = tmp_path / "model" if call == "save" else points()
    with pytest.raises(SklearnNotFittedError, match="not fitted"):
        getattr(forest_of(), call)(argument)
    assert not hasattr(forest_of(), "feature_importances_")


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
@pytest.mark.parametrize("notion", NOTIONS)
def test_pickle__keeps_every_bit(notion, pickler):
    X = points()
    forest = forest_of(notion).fit(X, example(notion, X)[0])
    twin = pickler.loads(pickler.dumps(forest))
    assert bits(twin) == bits(forest)
    np.testing.assert_array_equal(twin.pairwise(X), forest.pairwise(X))


def test_frozen__stays_fitted_through_clone_and_fit():
    X, z = plane()
    forest = forest_of().fit(X, z)
    frozen = clone(forest.frozen())
    frozen.fit(points(), None)
    np.testing.assert_array_equal(frozen.pairwise(X), forest.pairwise(X))
    with pytest.raises(NotFittedError):
        forest_of().frozen()


def test_pipeline__and_search_take_the_forest_for_what_it_is():
    X = points()
    piped = make_pipeline(StandardScaler(), forest_of("absolute")).fit(X, X[:, 0])
    assert piped.transform(X).shape[0] == 40
    searched = GridSearchCV(forest_of("absolute"), {"min_samples_leaf": [2, 15]}, cv=2)
    assert searched.fit(X, X[:, 0]).best_params_ == {"min_samples_leaf": 2}


# Learning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS)
def test_fit__gives_the_same_bits_with_one_thread_and_two(notion):
    X = points()
    Z = example(notion, X)[0]
    one, two = (forest_of(notion, n_estimators=40, n_jobs=n).fit(X, Z) for n in (1, 2))
    assert bits(one) == bits(two)
    np.testing.assert_array_equal(one.pairwise(X), two.pairwise(X))


@pytest.mark.parametrize("notion", NOTIONS)
def test_warm_start__equals_fitting_all_trees_at_once(notion):
    X = points()
    Z = example(notion, X)[0]
    warm = forest_of(notion, n_estimators=3, warm_start=True).fit(X, Z)
    first = warm._forest.trees[0]
    warm.set_params(n_estimators=8).fit(X, Z)
    assert warm._forest.trees[0] is first
    assert bits(warm) == bits(forest_of(notion, n_estimators=8).fit(X, Z))


def test_warm_start__without_a_fixed_seed_adds_other_trees():
    X, z = plane()
    warm = forest_of(n_estimators=2, warm_start=True, random_state=None).fit(X, z)
    warm.set_params(n_estimators=4).fit(X, z)
    drawn = bags(warm)
    assert len(np.unique(drawn, axis=0)) == 4


@pytest.mark.parametrize(
    "changed",
    [{"n_estimators": 2}, {"min_samples_leaf": 4}, {"pool_size": 30}, {"weighting": "kernel"}],
)
def test_warm_start__refuses_what_does_not_only_add_trees(changed):
    X, z = plane()
    warm = forest_of(warm_start=True, max_samples=20).fit(X, z)
    with pytest.raises(SpecError, match="warm_start=True (only )?adds.* set warm_start=False"):
        warm.set_params(**changed).fit(X, z)
    warm.set_params(warm_start=False).fit(X, z)
    assert len(warm._forest.trees) == warm.n_estimators


@pytest.mark.parametrize(
    "make", [lambda: 7, lambda: np.int64(7), lambda: np.random.default_rng(7),
             lambda: np.random.RandomState(7)]
)  # fmt: skip
def test_random_state__of_every_kind_repeats(make):
    X, z = plane()
    one, two = (forest_of(random_state=make()).fit(X, z) for _ in range(2))
    assert bits(one) == bits(two)


def test_random_state__none_and_a_generator_used_twice_give_other_forests():
    X, z = plane()
    rng = np.random.default_rng(0)
    seeds = [
        forest_of(random_state=s).fit(X, z)._forest.recipe.seed for s in (None, None, rng, rng)
    ]
    assert len(set(seeds)) == 4


@pytest.mark.parametrize("bad", [-1, 1.5, "7", True])
def test_random_state__that_is_none_is_refused(bad):
    X, z = plane()
    with pytest.raises(SpecError, match=f"random_state={bad!r}"):
        forest_of(random_state=bad).fit(X, z)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize(("asked", "drawn"), [(13, 13), (0.25, 10), (1.0, 40), (None, 40)])
def test_max_samples__is_how_many_rows_each_tree_draws(asked, drawn, bootstrap):
    X, z = plane()
    forest = forest_of(max_samples=asked, bootstrap=bootstrap).fit(X, z)
    np.testing.assert_array_equal(bags(forest).sum(axis=1), drawn)
    assert bags(forest).max() == 1 or bootstrap
    assert [tree.weight[0] for tree in forest._forest.trees] == [drawn] * 5


@pytest.mark.parametrize("bootstrap", [True, False])
def test_pool_size__bounds_the_rows_that_any_tree_sees(bootstrap):
    X, z = plane()
    forest = forest_of(pool_size=12, n_estimators=30, bootstrap=bootstrap).fit(X, z)
    drawn = np.flatnonzero(bags(forest).sum(axis=0))
    np.testing.assert_array_equal(drawn, forest._forest.pool)
    assert len(drawn) == 12
    hidden = np.setdiff1d(np.arange(40), drawn)
    other = z.copy()
    other[np.ix_(hidden, hidden)] = 9.0
    np.fill_diagonal(other, 0)
    again = forest_of(pool_size=12, n_estimators=30, bootstrap=bootstrap).fit(X, other)
    np.testing.assert_array_equal(again.apply(X), forest.apply(X))
    np.testing.assert_allclose(again.pairwise(X), forest.pairwise(X), rtol=1e-6)


def test_pool_size__of_all_rows_or_more_changes_nothing():
    X, z = plane()
    assert bits(forest_of(pool_size=99).fit(X, z)) == bits(forest_of().fit(X, z))


def test_pool_size__trees_of_the_pool_may_vote_with_all_rows():
    X, z = plane()
    forest = forest_of(pool_size=12, leaf_rows="all", self_pairs=False).fit(X, z)
    model = forest._forest
    counts = [float(np.bincount(leaf).sum()) for leaf in model.leaves.T]
    assert counts == [40.0] * 5
    assert [tree.weight[0] for tree in model.trees] == [12] * 5


@pytest.mark.parametrize("max_leaf_nodes", [2, 3])
def test_max_leaf_nodes__and_depth_bound_the_trees(max_leaf_nodes):
    X, z = plane()
    forest = forest_of(max_leaf_nodes=max_leaf_nodes).fit(X, z)
    assert set(forest.n_leaves_) == {max_leaf_nodes}
    assert forest_of(max_depth=1).fit(X, z).n_leaves_.max() == 2


def test_table_budget__tabulates_leaves_at_ancestors():
    X, z = plane(150)
    whole = forest_of(min_samples_leaf=1).fit(X, z)
    small = forest_of(min_samples_leaf=1, table_budget=5 * 4 * 100).fit(X, z)
    assert max(len(table.mean) for table in small._forest.tables) <= 10 * 11 // 2
    assert 5 * sum(len(t.mean) * 8 for t in small._forest.tables) <= 5 * 5 * 8 * 55
    assert small.score(X, z) > 0.5
    assert whole.score(X, z) > small.score(X, z)
    np.testing.assert_array_equal(whole.apply(X), small.apply(X))


def test_self_pairs__count_within_leaves_or_not():
    X = np.zeros((4, 1))
    z = np.full((4, 4), 6.0)
    np.fill_diagonal(z, 0)
    options = {"bootstrap": False, "min_samples_leaf": 1}
    assert forest_of(**options).fit(X, z).pairwise(X)[0, 0] == 4.5
    assert forest_of(**options, self_pairs=False).fit(X, z).pairwise(X)[0, 0] == 6


def test_refit_leaves__with_the_rows_of_the_fit_equals_fitting_with_that_choice():
    X, z = plane()
    for leaf_rows in ("in_bag", "out_of_bag", "all"):
        direct = forest_of(leaf_rows=leaf_rows).fit(X, z)
        refitted = forest_of().fit(X, z).refit_leaves(X, z, leaf_rows=leaf_rows)
        np.testing.assert_array_equal(refitted.pairwise(X), direct.pairwise(X))


def test_refit_leaves__tabulates_other_rows_and_another_kind_of_distance():
    X, z = plane()
    forest = forest_of("absolute", min_samples_leaf=1).fit(X, X[:, 0])
    leaves, before = forest.apply(X), forest._forest.leaves
    new, _ = plane(60, seed=5)
    links = np.triu(np.random.default_rng(0).random((60, 60)) < 0.2, 1)
    graph = Graph(sparse.csr_array((links | links.T).astype(float)))
    assert forest.refit_leaves(new, graph, distance="graph") is forest
    np.testing.assert_array_equal(forest.apply(X), leaves)
    assert forest._forest.leaves is before  # neighbours are still the rows of the fit
    assert forest.pairwise(X).max() <= 1
    expected = r_squared(graph.dense()[np.triu_indices(60, 1)],
                         forest.pairwise(new)[np.triu_indices(60, 1)])  # fmt: skip
    assert forest.score(new, graph) == pytest.approx(expected)
    with pytest.raises(DataError, match="needs the 40 rows of the fit, got 60"):
        forest.refit_leaves(new, graph, distance="graph", leaf_rows="in_bag")


# Inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("notion", ["precomputed", "indicator"])
def test_fit__of_sparse_rows_equals_dense_ones(notion, dtype):
    X = (points() * (points(seed=8) > 0)).astype(dtype)
    Z = example(notion, X)[0]
    dense, thin = (forest_of(notion).fit(rows, Z) for rows in (X, sparse.csr_array(X)))
    assert bits(dense) == bits(thin)
    np.testing.assert_array_equal(dense.pairwise(sparse.coo_matrix(X)), thin.pairwise(X))


def test_fit__takes_names_and_holds_queries_to_them():
    X = pd.DataFrame(points(), columns=list("abc"))
    z = example("precomputed", points())[0]
    forest = forest_of().fit(X, z)
    assert forest.feature_names_in_.tolist() == ["a", "b", "c"]
    assert forest.n_features_in_ == 3
    with pytest.raises(DataError, match="feature names should match"):
        forest.pairwise(X[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        forest.apply(X.to_numpy())
    np.testing.assert_array_equal(forest.apply(pl.DataFrame(X)), forest.apply(X))
    forest.score(X, z)  # without a warning
    assert not hasattr(forest.fit(X.to_numpy(), z), "feature_names_in_")


def test_pairwise__refuses_another_number_of_features():
    X, z = plane()
    with pytest.raises(DataError, match="X has 3 features, but DistanceForest"):
        forest_of().fit(X, z).pairwise(points())


@pytest.mark.parametrize(
    ("notion", "Z", "message"),
    [
        ("precomputed", np.zeros((3, 3)), r"X has 40 rows, Z is \(3, 3\)"),
        ("absolute", Pairs([0], [1], [1.0]), 'does not take Pairs; use distance="pairs"'),
        ("graph", np.zeros((40, 40)), "needs Graph, got ndarray; give dforest.Graph"),
        ("pairs", Graph(edges=[[0, 1]]), "needs Pairs, got Graph"),
        ("precomputed", Graph(edges=[[0, 1]]), "X has 40 rows, the graph has 2"),
        ("pairs", Pairs([0], [40], [1.0]), "X has 40 rows"),
        ("absolute", np.zeros((40, 2)), "takes one response"),
        ("indicator", np.zeros(39), "X has 40 rows, y has 39"),
        ("half_squared", np.r_[np.nan, np.zeros(39)], "the first is row 0"),
        ("manhattan", np.zeros((40, 40)), "no 'manhattan'; there are absolute, graph"),
    ],
)
def test_fit__says_what_does_not_fit(notion, Z, message):
    error = SpecError if notion == "manhattan" else DataError
    with pytest.raises(error, match=message):
        forest_of(notion).fit(points(), Z)


def test_fit__pairs_and_graphs_need_not_be_announced():
    X = points()
    for notion in ("pairs", "graph"):
        Z, z = example(notion, X)
        said, unsaid = forest_of(notion).fit(X, Z), forest_of().fit(X, Z)
        assert bits(said) == bits(unsaid)
        assert parameters_of(unsaid)["notion"] == notion
        expected = r_squared(z[np.triu_indices(40, 1)], said.pairwise(X)[np.triu_indices(40, 1)])
        assert said.score(X, Z) == pytest.approx(expected)
        assert unsaid.score(X, z) == pytest.approx(expected, abs=1e-6)  # as a matrix


def test_fit__unknown_features_are_learned_from():
    X, z = plane(150)
    hidden = X.copy()
    hidden[::3, 0] = np.nan
    forest = forest_of(n_estimators=20).fit(hidden, z)
    assert np.isfinite(forest.pairwise(hidden)).all()
    assert forest.score(hidden, z) > 0.3


def test_apply__routes_infinite_queries_as_the_greatest_values():
    X, z = plane()
    forest = forest_of().fit(X, z)
    far = np.array([[np.inf, -np.inf], [1e300, -1e300]])
    leaves = forest.apply(far)
    np.testing.assert_array_equal(leaves[0], leaves[1])
    with pytest.raises(DataError, match="inf"):
        forest_of().fit(np.r_[X[:-1], far[:1]], z)


# Answers -----------------------------------------------------------------------------------------


def test_kneighbors_graph__holds_distances_or_ones():
    X, z = plane()
    forest = forest_of().fit(X, z)
    distance, index = forest.kneighbors(X[:4], 3)
    graph = forest.kneighbors_graph(X[:4], 3)
    assert graph.shape == (4, 40)
    np.testing.assert_array_equal(graph.toarray()[np.arange(4)[:, None], index], distance)
    ones = forest.kneighbors_graph(n_neighbors=2, mode="connectivity")
    np.testing.assert_array_equal(ones.sum(axis=1), np.full(40, 2))
    assert ones.diagonal().sum() == 0
    with pytest.raises(SpecError, match="mode='distances' is unknown"):
        forest.kneighbors_graph(X, mode="distances")


def test_paired__needs_as_many_rows():
    X, z = plane()
    with pytest.raises(DataError, match="XA has 4 rows and XB 3"):
        forest_of().fit(X, z).paired(X[:4], X[:3])


def test_score__is_the_share_of_variance_over_known_pairs_of_different_rows():
    X, z = plane()
    forest = forest_of().fit(X, z)
    hidden = z.copy()
    hidden[:5, 20:] = hidden[20:, :5] = np.nan
    above = np.triu(~np.isnan(hidden), 1)
    guess = forest.pairwise(X)[above]
    errors = ((z[above] - guess) ** 2).sum()
    expected = 1 - errors / ((z[above] - z[above].mean()) ** 2).sum()
    assert forest.score(X, hidden) == pytest.approx(expected, abs=1e-6)


def test_pairwise__streams_tiles_to_a_store(tmp_path):
    X, z = plane()
    forest = forest_of().fit(X, z)
    stored = forest.pairwise(X, out=tmp_path / "z")
    assert isinstance(stored, MatrixStore)
    np.testing.assert_allclose(stored[:, :], forest.pairwise(X), rtol=1e-6)
    other = forest.pairwise(X[:7], X[3:], out=tmp_path / "other")
    np.testing.assert_allclose(other[:, :], forest.pairwise(X[:7], X[3:]), rtol=1e-6)
    outside = forest.oob_pairwise(out=tmp_path / "oob")
    np.testing.assert_allclose(outside[:, :], forest.oob_pairwise(), rtol=1e-6)
    with pytest.raises(SpecError, match="leave return_std=False"):
        forest.pairwise(X, out=tmp_path / "std", return_std=True)


def test_top_level__names_what_users_need():
    assert set(dforest.__all__) == {
        "DistanceForest", "ForestClassifier", "ForestRegressor", "Graph", "KernelForestClassifier",
        "KernelForestRegressor", "KernelRegressor", "MatrixStore", "Pairs",
        "UncertaintyForestClassifier", "cross_validate", "kerf_centred", "kerf_uniform", "load",
        "pairwise_distances", "permutation_importance",
    }  # fmt: skip
