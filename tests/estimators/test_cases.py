"""Faults that users met in other packages, each with its kin, as they would look here."""

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from small_forests import NOTIONS, bags, bits, example, forest_of, plane, points

from dforest import Graph, Pairs
from dforest.errors import DataError

TESTS = pathlib.Path(__file__).parents[1]

# Large: never n x n ------------------------------------------------------------------------------

LARGE = """
import resource, sys
limit = 1 << 30
resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
import numpy as np
from scipy import sparse
from dforest import DistanceForest, Graph
from dforest.errors import SpecError

rng, n = np.random.default_rng(0), 20_000
X = rng.random((n, 4))
near = np.argsort(X[:, 0])
i = near[rng.integers(n - 40, size=200_000)]
place = np.empty(n, int)
place[near] = np.arange(n)
j = near[place[i] + rng.integers(1, 40, size=200_000)]
w = sparse.coo_array((np.ones(200_000), (i, j)), shape=(n, n)).tocsr()
w.data[:] = 1.0
graph = Graph(w.maximum(w.T))
forest = DistanceForest("graph", n_estimators=4, random_state=0, n_jobs=2).fit(X, graph)
linked, far = forest.paired(X[i[:500]], X[j[:500]]), forest.paired(X[:500], X[500:1000])
assert linked.mean() < far.mean() - 0.001, (linked.mean(), far.mean())
distance, index = forest.kneighbors(X[:20], 3)
assert index.shape == (20, 3) and np.isfinite(distance).all()
assert forest.kneighbors_graph(X[:20], 3).nnz == 60
assert np.isfinite(forest.score(X[:5_000], graph.take(np.arange(5_000))))  # never n x n
for ask in (forest.pairwise, lambda X: forest.oob_pairwise()):
    try:
        ask(X)
    except SpecError as error:
        assert "all 20,000 x 20,000 distances take 2.98 GiB, the limit is 0.50" in str(error)
        assert "give out=PATH, or ask for kneighbors" in str(error)
    else:
        raise AssertionError("20,000 x 20,000 was not refused")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
assert peak < limit, peak
"""


@pytest.mark.slow
def test_large_graph__is_fitted_and_asked_within_one_gigabyte():
    env = os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent}", "OMP_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "error", "-c", LARGE]
    ended = subprocess.run(command, env=env, timeout=500, check=False, capture_output=True)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]


# Kinds of numbers --------------------------------------------------------------------------------


def test_float16__whose_row_sums_overflow_gives_the_splits_of_float64():
    X, z = plane(150)
    Z = np.float16(np.round(z * 1_000) * 8)  # rows sum to more than 65,504, float16's largest
    assert np.float64(Z).sum(axis=1).max() > 65_504
    options = {"n_estimators": 3}
    assert bits(forest_of(**options).fit(X, Z)) == bits(forest_of(**options).fit(X, np.float64(Z)))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, bool, np.float32, ">f8"])
def test_whole_numbers__of_any_kind_give_the_same_forest(kind):
    X, z = plane()
    Z = (z > 0.5).astype(kind)
    assert bits(forest_of().fit(X, Z)) == bits(forest_of().fit(X, (z > 0.5).astype(float)))
    assert bits(forest_of().fit(X, Z.tolist())) == bits(forest_of().fit(X, Z))


def test_any_order_and_memory__gives_the_same_forest():
    X, z = plane()
    Z = np.float32(z)
    expected = bits(forest_of().fit(X, Z))
    frozen = Z.copy()
    frozen.flags.writeable = False
    for form in (np.asfortranarray(Z), frozen, np.repeat(Z, 2, axis=1)[:, ::2]):
        before = form.copy()
        assert bits(forest_of().fit(np.asfortranarray(X), form)) == expected
        np.testing.assert_array_equal(form, before)


@pytest.mark.parametrize("huge", [1e39, -1e300])
def test_numbers_beyond_float32__are_refused(huge):
    X, z = plane()
    z[3, 9] = z[9, 3] = huge
    with pytest.raises(DataError, match=r"Z\[3, 9\] is .*beyond float32"):
        forest_of().fit(X, z)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e30])
@pytest.mark.parametrize("notion", ["precomputed", "half_squared", "absolute", "graph", "pairs"])
def test_units__do_not_matter(notion, scale):
    X = points()
    scale = 2.0 ** round(np.log2(scale))
    Z = example(notion, X)[0]
    if notion == "graph":
        bigger = Graph(Z.weights * scale, Z.far * scale)
    elif notion == "pairs":
        bigger = Pairs(Z.i, Z.j, Z.z * scale)
    else:
        bigger = Z * scale
    one, other = forest_of(notion).fit(X, Z), forest_of(notion).fit(X, bigger)
    np.testing.assert_array_equal(one.apply(X), other.apply(X))
    times = scale**2 if notion == "half_squared" else scale
    np.testing.assert_allclose(other.pairwise(X) / times, one.pairwise(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e155, 1e300])
@pytest.mark.parametrize("notion", ["half_squared", "absolute", "graph", "pairs"])
def test_units__whose_squares_leave_float64_are_refused(notion, scale):
    X = points()
    Z = example(notion, X)[0]
    if notion == "graph":
        Z = Graph(Z.weights * scale, Z.far * scale)
    elif notion == "pairs":
        Z = Pairs(Z.i, Z.j, Z.z * scale)
    else:
        Z = Z * scale
    with pytest.raises(DataError, match="reaches .*e[+-].* need 1e-100 to 1e\\+100; give it in an"):
        forest_of(notion).fit(X, Z)


# Matrices that are none --------------------------------------------------------------------------


def test_asymmetric__names_the_worst_pair():
    X, z = plane()
    z[5, 8] += 0.1
    z[30, 2] -= 0.4
    message = r"Z\[2, 30\] is \S+ but Z\[30, 2\] is \S+, the worst pair.*Z = \(Z \+ Z.T\) / 2"
    with pytest.raises(DataError, match=message):
        forest_of().fit(X, z)
    forest_of().fit(X, (z + z.T) / 2)


def test_asymmetric__unknown_on_one_side_only():
    X, z = plane()
    z[5, 8] = np.nan
    with pytest.raises(DataError, match=r"Z\[5, 8\] is nan but Z\[8, 5\] is"):
        forest_of().fit(X, z)


def test_diagonal__is_honoured_and_not_zeroed():
    X = np.arange(6.0)[:, None]
    z = abs(X - X.T) + np.diag([0.5, 0.25, 0.125, 0.5, 0.75, 0.0])
    options = {"bootstrap": False, "min_samples_leaf": 1, "max_features": None}
    forest = forest_of(**options).fit(X, z)
    np.testing.assert_allclose(forest.pairwise(X), z)


@pytest.mark.parametrize(
    ("Z", "message"),
    [
        (np.zeros((99, 100)), r"X has 100 rows, Z is \(99, 100\): Z must be \(100, 100\)"),
        (np.zeros((101, 101)), r"X has 100 rows, Z is \(101, 101\)"),
        (np.zeros((100, 100, 1)), r"Z is \(100, 100, 1\)"),
        (pdist(points(100)), r"condensed form of 100 rows.*scipy.spatial.distance.squareform"),
        (sparse.eye_array(100), r"Z is sparse.*Graph\(weights\).*Pairs\(i, j, z\)"),
        (np.full((100, 100), np.nan), "NaN everywhere"),
        (np.full((100, 100), "near"), "text|number|numeric"),
        (None, "Z"),
    ],
    ids=["short", "long", "cube", "condensed", "sparse", "unknown", "text", "none"],
)
def test_wrong_matrices__are_refused_at_once(Z, message):
    with pytest.raises((DataError, TypeError), match=message):
        forest_of().fit(points(100), Z)


def test_infinite__names_its_place():
    X, z = plane()
    z[4, 6] = z[6, 4] = np.inf
    with pytest.raises(DataError, match=r"Z\[4, 6\] is inf.*use NaN where one is unknown"):
        forest_of().fit(X, z)


def test_unknown__sixty_rows_forty_percent_and_one_row_of_nan():
    X, z = plane(60)
    hidden = np.triu(np.random.default_rng(0).random(z.shape) < 0.4, 1)
    Z = np.where(hidden | hidden.T, np.nan, z)
    Z[11] = Z[:, 11] = np.nan
    forest = forest_of(n_estimators=30).fit(X, Z)
    found = forest.pairwise(X)
    assert np.isfinite(found).all()
    assert found.min() > 0
    assert np.corrcoef(found[hidden], z[hidden])[0, 1] > 0.8
    assert np.isfinite(forest.score(X, Z))


# Graphs ------------------------------------------------------------------------------------------


def test_isolated_nodes__lie_far_from_all_without_a_warning():
    X = np.arange(5.0)[:, None]
    graph = Graph(edges=[[0, 1], [1, 2], [2, 3]], n_rows=5)
    options = {"bootstrap": False, "min_samples_leaf": 1, "max_features": None}
    forest = forest_of("graph", **options).fit(X, graph)
    found = forest.pairwise(X)
    np.testing.assert_allclose(found[4], [1, 1, 1, 1, 0], atol=1e-12)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("n_edges", [0, 1])
def test_graphs__of_almost_no_edges_are_learned(n_edges):
    X = points()
    graph = Graph(edges=np.array([[0, 1]])[:n_edges].reshape(-1, 2), n_rows=40)
    found = forest_of("graph").fit(X, graph).pairwise(X)
    assert np.isfinite(found).all()
    assert found.max() <= 1


def test_graphs__self_loops_are_dropped_with_a_warning():
    w = sparse.csr_array(np.ones((40, 40)))
    with pytest.warns(UserWarning, match=r"40 self-loop\(s\) dropped"):
        graph = Graph(w)
    assert forest_of("graph").fit(points(), graph).pairwise(points()).max() == pytest.approx(0)


def test_graphs__that_are_directed_are_refused_with_the_remedy():
    w = sparse.csr_array(([1.0], ([0], [1])), shape=(40, 40))
    with pytest.raises(DataError, match=r"directed.*w.maximum\(w.T\) or w \+ w.T"):
        Graph(w)


# Small and constant ------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS)
def test_one_row__is_one_leaf(notion):
    Z = {
        "precomputed": [[0.5]], "pairs": Pairs([0], [0], [0.5]), "graph": Graph(edges=[], n_rows=1),
        "indicator": ["a"], "half_squared": [3.0], "absolute": [3.0],
    }[notion]  # fmt: skip
    forest = forest_of(notion).fit([[1.0, 2.0]], Z)
    expected = 0.5 if notion in ("precomputed", "pairs") else 0.0
    np.testing.assert_array_equal(
        forest.pairwise([[7.0, 7.0], [1.0, 2.0]]), np.full((2, 2), expected)
    )
    assert list(forest.n_leaves_) == [1] * 5
    assert forest.kneighbors([[1.0, 2.0]], 1)[1].tolist() == [[0]]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_rows_or_features__are_refused(shape):
    what = "row" if shape[0] == 0 else "feature"
    with pytest.raises(DataError, match=rf"X has 0 {what}\(s\)"):
        forest_of().fit(np.empty(shape), np.zeros((shape[0], shape[0])))


@pytest.mark.parametrize("notion", NOTIONS)
def test_equal_rows__are_one_leaf_of_the_mean_distance(notion):
    X = np.ones((40, 2))
    Z, z = example(notion, points())
    forest = forest_of(notion, bootstrap=False).fit(X, Z)
    assert list(forest.n_leaves_) == [1] * 5
    np.testing.assert_allclose(forest.pairwise(X), np.full((40, 40), np.nanmean(z)), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_constant_distances__are_learned_as_they_are(value):
    Z = np.full((40, 40), value)
    forest = forest_of().fit(points(), Z)
    np.testing.assert_allclose(forest.pairwise(points()), Z, rtol=1e-6)
    assert forest.feature_importances_.sum() in (0, pytest.approx(1))
    mean, std = forest.pairwise(points(), return_std=True)
    np.testing.assert_allclose(std, 0, atol=1e-6)
    assert np.isnan(forest.score(points(), Z))


@pytest.mark.parametrize("notion", ["indicator", "half_squared", "absolute"])
def test_constant_responses__are_one_leaf(notion):
    forest = forest_of(notion).fit(points(), np.full(40, 7))
    assert list(forest.n_leaves_) == [1] * 5
    np.testing.assert_array_equal(forest.pairwise(points()), np.zeros((40, 40)))


# Thresholds --------------------------------------------------------------------------------------

CLOSE = {
    "tiny": [0.0, 1e-7, 2e-7, 3e-7],
    "decimal": [1.9, np.nextafter(1.9, 2), 1.8, np.nextafter(1.8, 2)],
    "beyond-float32": [16777216.0, 16777217.0, 16777218.0, 16777219.0],
    "huge": [1e308, np.nextafter(1e308, np.inf), -1e308, 1.7e308],
    "subnormal": [5e-324, 0.0, 1e-323, -5e-324],
}


@pytest.mark.parametrize("projections", ["axis", "sparse"])
@pytest.mark.parametrize("values", CLOSE.values(), ids=CLOSE.keys())
def test_close_values__are_told_apart_and_return_to_their_leaves(values, projections):
    X = np.array(values)[:, None]
    options = {"bootstrap": False, "min_samples_leaf": 1, "projections": projections}
    forest = forest_of("absolute", **options).fit(X, np.arange(4.0))
    assert list(forest.n_leaves_) == [4] * 5
    np.testing.assert_array_equal(forest.apply(X), forest._forest.leaves)
    apart = np.arange(4.0)
    np.testing.assert_array_equal(forest.pairwise(X), abs(apart[:, None] - apart))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("projections", ["axis", "sparse"])
def test_training_rows__return_to_their_leaves(dtype, projections):
    X = np.random.default_rng(0).normal(size=(150, 4)).astype(dtype)
    X[::7, 1] = np.nan
    forest = forest_of("absolute", min_samples_leaf=1, projections=projections)
    forest.fit(X, np.nan_to_num(X).sum(axis=1))
    np.testing.assert_array_equal(forest.apply(X), forest._forest.leaves)
    sizes = [np.bincount(leaf, weights) for leaf, weights in zip(forest.apply(X).T, bags(forest))]
    for tree, size in zip(forest._forest.trees, sizes):
        np.testing.assert_array_equal(tree.weight[tree.right < 0], size)


# Empty cells, copies -----------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_empty_leaves__answer_with_their_parents_mean_and_never_zero_over_zero(notion, weighting):
    X = points()
    options = {"leaf_rows": "out_of_bag", "min_samples_leaf": 1, "max_samples": 36}
    options |= {"bootstrap": False, "weighting": weighting, "self_pairs": False}
    forest = forest_of(notion, **options).fit(X, example(notion, X)[0])
    assert forest.n_fallback_ > 0
    far = np.full((1, 3), 99.0)
    assert np.isfinite(forest.pairwise(np.r_[X, far])).all()


def test_rows_without_a_tree__are_nan_out_of_bag_and_not_zero():
    X, z = plane()
    forest = forest_of(n_estimators=1).fit(X, z)
    inside = bags(forest)[0] > 0
    found = forest.oob_pairwise()
    np.testing.assert_array_equal(np.isnan(found), inside[:, None] | inside)


def test_copies__of_rows_weigh_as_often_as_they_were_drawn():
    X, z = plane()
    forest = forest_of(min_samples_leaf=1).fit(X, z)
    for tree, drawn in zip(forest._forest.trees, bags(forest)):
        assert tree.weight[0] == drawn.sum() == 40


def test_pickle__of_a_class_that_is_fitted_in_two_places():
    X, z = plane()
    forest = pickle.loads(pickle.dumps(forest_of(max_samples=20)))
    np.testing.assert_array_equal(bags(forest.fit(X, z)).sum(axis=1), 20)


def test_frames__of_text_name_the_column():
    X = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(DataError, match="colour"):
        forest_of().fit(X, np.zeros((2, 2)))
