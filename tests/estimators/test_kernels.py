"""`kerf_centred`, `kerf_uniform`, `KernelRegressor`: what they take, what they refuse."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from dforest import KernelRegressor, kerf_centred, kerf_uniform, load
from dforest.errors import DataError, NotFittedError, SpecError

both = pytest.mark.parametrize("kerf", [kerf_centred, kerf_uniform])


def cube(n=60, d=2, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    return X, np.sin(6 * X[:, 0]) + X[:, 1]


# The kernels -------------------------------------------------------------------------------------


@both
def test_kerf__takes_every_kind_of_table(kerf):
    X = np.random.default_rng(0).integers(0, 5, (9, 3)) / 4  # exact in float32
    expected = kerf(X, None, 4)
    np.testing.assert_array_equal(kerf(X, X, depth=4, n_jobs=2), expected)
    frame = pd.DataFrame(X, columns=list("abc"))
    for table in (
        X.tolist(),
        X.astype(np.float32),
        frame,
        sparse.csr_array(X),
        np.asfortranarray(X),
    ):
        np.testing.assert_array_equal(kerf(table, X, 4), expected)
    assert kerf([[0, 1]], [[1, 1], [0, 1]], 0).tolist() == [[1.0, 1.0]]


@both
@pytest.mark.parametrize(
    ("XA", "XB", "message"),
    [
        ([[0.5], [1.5]], None, r"XA\[1, 0\] is 1.5: .* scale them by MinMaxScaler\(clip=True\)"),
        ([[0.5]], [[0.1], [-1e-9]], r"XB\[1, 0\] is -1e-09: .* \[0, 1\] in each feature"),
        ([[0.5, np.nan]], None, r"XA\[0, 1\] is NaN: .* SimpleImputer"),
        ([[0.5, 0.5]], [[0.5]], "XA has 2 features, XB has 1; give both the same"),
        ([0.5], None, "XA must have 2 dimensions"),
    ],
)
def test_kerf__refuses_what_is_not_in_the_unit_cube(kerf, XA, XB, message):
    with pytest.raises(DataError, match=message):
        kerf(XA, XB, 3)


@both
@pytest.mark.parametrize("depth", [-1, 63, 2.0, "3", None, True])
def test_kerf__refuses_depths(kerf, depth):
    with pytest.raises(SpecError, match="depth=.* give a whole number from 0 to 62"):
        kerf([[0.5]], None, depth)


@both
def test_kerf__works_within_scikit_learn(kerf):
    X, y = cube()
    new = cube(20, seed=1)[0]
    told = SVR(kernel="precomputed").fit(kerf(X, None, 4), y).predict(kerf(new, X, 4))
    called = SVR(kernel=partial(kerf, depth=4)).fit(X, y).predict(new)
    np.testing.assert_allclose(called, told)
    ridge = KernelRidge(kernel="precomputed", alpha=1e-3).fit(kerf(X, None, 4), y)
    assert np.isfinite(ridge.predict(kerf(new, X, 4))).all()


# The regressor -----------------------------------------------------------------------------------


@parametrize_with_checks([KernelRegressor(), KernelRegressor("centred", 3, n_jobs=1)])
@pytest.mark.filterwarnings("default")
def test_scikit_learn__finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("kernel", "kerf"), [("centred", kerf_centred), ("uniform", kerf_uniform)])
def test_regressor__weighs_responses_by_the_kernel(kernel, kerf):
    X, y = cube()
    new = cube(20, seed=1)[0]
    regressor = KernelRegressor(kernel, scale=False).fit(X, y)
    assert regressor.depth_ == 5  # floor(log2 60)
    K = kerf(new, X, 5)
    np.testing.assert_allclose(regressor.predict(new), K @ y / K.sum(axis=1))
    both = regressor.fit(X, np.stack([y, 2 * y], axis=1)).predict(new)
    np.testing.assert_allclose(both[:, 1], 2 * both[:, 0])


def test_regressor__scales_features_by_their_range():
    X, y = cube()
    X[0], X[1] = 0.0, 1.0
    new = cube(20, seed=1)[0]
    plain = KernelRegressor(scale=False).fit(X, y)
    scaled = KernelRegressor().fit(8 * X - 3, y)
    np.testing.assert_allclose(scaled.predict(8 * new - 3), plain.predict(new))
    np.testing.assert_allclose(scaled.predict([[99.0, -99.0]]), plain.predict([[1.0, 0.0]]))
    wide = KernelRegressor().fit((2 * X - 1) * [1e308, 0], y).predict((2 * new - 1) * [1e308, 9])
    assert np.isfinite(wide).all()
    with pytest.raises(DataError, match=r"X\[0, 0\] is 99: .* MinMaxScaler"):
        plain.predict([[99.0, 0.5]])
    with pytest.raises(DataError, match=r"X\[1, 0\] is -2: "):
        KernelRegressor(scale=False).fit([[0.0], [-2.0]], [1, 2])


def test_regressor__tells_the_mean_where_no_tree_has_a_neighbour():
    regressor = KernelRegressor("centred", depth=3, scale=False).fit([[0.1], [0.2]], [1.0, 2.0])
    np.testing.assert_array_equal(regressor.predict([[0.9], [0.1]]), [1.5, 1.0])


def test_regressor__learns_better_than_the_mean_in_the_papers_first_model():
    rng = np.random.default_rng(0)
    X = rng.random((800, 10))
    t = 2 * (X - 0.5)
    y = t[:, 0] ** 2 + np.exp(-(t[:, 1] ** 2))
    for kernel in ("centred", "uniform"):
        assert KernelRegressor(kernel).fit(X[:640], y[:640]).score(X[640:], y[640:]) > 0.1


def test_regressor__on_a_matrix_is_sliced_both_ways_by_scikit_learn():
    X, y = cube()
    K = kerf_uniform(X, None, 5)
    plain = cross_val_predict(KernelRegressor(depth=5, scale=False), X, y, cv=3)
    matrix = cross_val_predict(KernelRegressor("precomputed"), K, y, cv=3)
    np.testing.assert_allclose(matrix, plain)
    regressor = KernelRegressor("precomputed").fit(K, y)
    np.testing.assert_array_equal(regressor.predict(np.zeros((1, 60))), [y.mean()])
    with pytest.raises(DataError, match="X is 59 x 60: the matrix of a kernel is square in fit"):
        regressor.fit(K[:59], y[:59])
    with pytest.raises(DataError, match=r"X\[0, 3\] is -1: responses are weighed by at least 0"):
        regressor.predict(np.where(np.arange(60) == 3, -1.0, 1.0)[None])


def test_regressor__is_searched_over_depths():
    X, y = cube(200)
    search = GridSearchCV(KernelRegressor(n_jobs=1), {"depth": [0, 8]}, cv=3).fit(X, y)
    assert search.best_params_ == {"depth": 8}
    assert abs(search.cv_results_["mean_test_score"][0]) < 0.1  # depth 0 tells the mean


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "uniforn"}, "kernel='uniforn' is unknown; .*did you mean 'uniform'"),
        ({"depth": 70}, "depth=70 is out of range"),
        ({"scale": 2}, "scale=2 is unknown"),
    ],
)
def test_regressor__refuses_parameters(options, message):
    with pytest.raises(SpecError, match=message):
        KernelRegressor(**options).fit(*cube())


@pytest.mark.parametrize("kernel", ["centred", "uniform", "precomputed"])
def test_load__gives_back_what_was_saved(kernel, tmp_path):
    X, y = cube()
    frame = pd.DataFrame(X, columns=["a", "b"])
    table = frame if kernel != "precomputed" else kerf_uniform(X, None, 5)
    regressor = KernelRegressor(kernel).fit(table, np.stack([y, y], axis=1))
    regressor.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == regressor.get_params()
    assert loaded.depth_ == regressor.depth_
    np.testing.assert_array_equal(loaded.predict(table), regressor.predict(table))
    with pytest.raises(NotFittedError, match="not fitted"):
        KernelRegressor(kernel).save(tmp_path / "none")
