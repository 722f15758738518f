"""Every line of the table that compares vectors, by its formula and by its properties."""

import decimal
import operator

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from dforest.distances import vectors
from dforest.distances.pairwise import measure_of
from dforest.distances.table import TABLE
from dforest.errors import DataError, SpecError

WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0])
CASES = [(name, {}) for name, line in TABLE.items() if line.kind == "vectors"]
CASES += [("minkowski", {"p": p, "w": w}) for p in (1, 2, 5, 7.5) for w in (None, WEIGHTS)]
SCIPY = {"manhattan": "cityblock"}

each = pytest.mark.parametrize(
    ("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else str(value)
)
quick = settings(deadline=None, max_examples=25)


def distances(name, options, ones, others=None):
    ones, others = np.asarray(ones), np.asarray(ones if others is None else others)
    measure = measure_of(name, options, n_features=ones.shape[1])
    out = np.full((len(ones), len(others)), np.nan)
    measure.sweep(measure.prepare(ones), measure.prepare(others, what="B"), out)
    return out


def rows(n, p=5, seed=0):
    """Rows of every kind: spread out, nearly equal, of few values, equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[1::4] = X[::4][: len(X[1::4])] + 1e-9 * rng.normal(size=X[1::4].shape)
    X[2::4] = np.rint(2 * X[2::4])
    X[2::4, 0], X[2::4, 1] = 1, 5  # neither zero nor constant
    X[-1] = X[0]
    return X


@st.composite
def triples(draw):
    numbers = st.floats(-1e6, 1e6, width=32) | st.integers(-2, 2).map(float)
    X = draw(arrays(np.float64, (3, 5), elements=numbers))
    X[:, 0], X[:, 1] = [1, 2, 3], 5  # each has a direction, and is not constant
    return X


def test_table__has_a_twin_and_a_case_for_every_line():
    assert naive.VECTORS.keys() == {name for name, _ in CASES}


@each
@quick
@given(X=triples())
def test_sweep__equals_the_formula(name, options, X):
    expected = [[naive.VECTORS[name](x, y, **options) for y in X] for x in X]
    scale = 1.0 if name in ("cosine", "correlation") else 0.0
    np.testing.assert_allclose(distances(name, options, X), expected, rtol=1e-9, atol=1e-13 * scale)


@each
def test_sweep__equals_scipy(name, options):
    X, Y = rows(40), rows(37, seed=1)
    given = {key: value for key, value in options.items() if value is not None}
    expected = cdist(X, Y, SCIPY.get(name, name), **given)
    np.testing.assert_allclose(distances(name, options, X, Y), expected, rtol=1e-12, atol=1e-15)


@each
@quick
@given(X=triples())
def test_distances__are_exactly_symmetric_and_zero_to_themselves(name, options, X):
    z = distances(name, options, X)
    assert TABLE[name].is_symmetric
    np.testing.assert_array_equal(z, z.T)
    np.testing.assert_array_equal(np.diag(z), 0)
    assert (z >= 0).all()


@each
@quick
@given(X=triples())
def test_metrics__keep_the_triangle_inequality(name, options, X):
    z = distances(name, options, X)
    (_, a, b), (_, _, c), _ = z
    if TABLE[name].is_metric:
        assert max(a, b, c) <= (a + b + c) / 2 * (1 + 1e-9)


@pytest.mark.parametrize("name", [name for name, line in TABLE.items() if not line.is_metric])
def test_what_is_called_no_metric__breaks_the_triangle_inequality(name):
    X = [[1.0, 0, 0, 2], [1.0, 1, 0, 2], [1.0, 2, 0, 2]]
    (_, a, b), (_, _, c), _ = distances(name, {}, X)
    assert b > a + c


@each
def test_bits__depend_on_the_two_rows_alone(name, options):
    n, p = 2 * vectors.SIDE + 3, 2 * vectors.DEPTH + 7
    weights = np.resize(WEIGHTS, p) if options.get("w") is not None else None
    options = options | ({"w": weights} if "w" in options else {})
    X = rows(n, p)
    z = distances(name, options, X)
    np.testing.assert_array_equal(z, z.T)
    order = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(distances(name, options, X[order]), z[np.ix_(order, order)])
    for part in (slice(0, 1), slice(5, 8), slice(126, 130), slice(1, n)):
        found = distances(name, options, X[part], X[::-3])
        np.testing.assert_array_equal(found, z[part, ::-3])


@each
def test_float32_and_any_layout__give_the_bits_of_float64(name, options):
    X = rows(9).astype(np.float32)
    expected = distances(name, options, X.astype(np.float64))
    for same in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(distances(name, options, same), expected)


def test_sweep__writes_where_it_is_told():
    measure = measure_of("manhattan", n_features=1)
    x = measure.prepare(np.arange(3.0)[:, None])
    out = np.full((3, 6), -1.0)
    measure.sweep(x, x[:2], out, 3)
    np.testing.assert_array_equal(out[:, [0, 1, 2, 5]], -1)
    np.testing.assert_array_equal(out[:, 3:5], abs(x - x[:2].T))


def test_minkowski__of_no_weights_is_what_its_exponent_names():
    X = rows(20)
    for p, name in ((1, "manhattan"), (2, "euclidean"), (None, "euclidean")):
        found = distances("minkowski", {"p": p}, X)
        np.testing.assert_array_equal(found, distances(name, {}, X))


def in_many_digits(x, y, is_centred):
    """1 - cosine in fifty decimal digits."""
    with decimal.localcontext(prec=50):
        x, y = [[decimal.Decimal(float(value)) for value in row] for row in (x, y)]
        if is_centred:
            x, y = ([value - sum(row) / len(row) for value in row] for row in (x, y))
        dot, own, other = (sum(map(operator.mul, *two)) for two in ((x, y), (x, x), (y, y)))
        return float(1 - dot / (own * other).sqrt())


@pytest.mark.parametrize("name", ["cosine", "correlation"])
@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-9])
def test_cosine_and_correlation__keep_their_digits_between_nearly_parallel_rows(name, step):
    rng = np.random.default_rng(0)
    x = rng.normal(size=6)
    y = 3 * x + step * rng.normal(size=6)
    expected = in_many_digits(x, y, name == "correlation")  # as small as 1e-19
    assert distances(name, {}, [x, y])[0, 1] == pytest.approx(expected, rel=1e-15 / step)


@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1e149])
def test_cosine_and_correlation__know_no_scale(scale):
    X = rows(10)
    for name in ("cosine", "correlation"):
        found = distances(name, {}, X * scale)
        np.testing.assert_allclose(found, distances(name, {}, X), atol=1e-15)


# What is refused ---------------------------------------------------------------------------------


@each
def test_prepare__refuses_what_has_no_distance_by_its_number(name, options):
    measure = measure_of(name, options, n_features=5)
    X = rows(4)
    X[2, 3] = np.nan
    with pytest.raises(DataError, match=r"B\[12, 3\] is nan: a distance to an unknown value"):
        measure.prepare(X, 10, "B")
    X[2, 3] = -1e151
    with pytest.raises(DataError, match=r"A\[2, 3\] is -1e\+151: the largest allowed is 1e\+150"):
        measure.prepare(X)


def test_cosine__refuses_a_row_without_direction():
    measure = measure_of("cosine", n_features=2)
    with pytest.raises(DataError, match=r"A\[6\] is all zeros, .* its cosine distance is not"):
        measure.prepare(np.array([[1.0, 1], [0, 0]]), 5)


@pytest.mark.parametrize("value", [0.0, 0.1, -7e100])
def test_correlation__refuses_a_constant_row(value):
    measure = measure_of("correlation", n_features=3)
    with pytest.raises(DataError, match=r"A\[1\] is constant: its correlation distance is not"):
        measure.prepare(np.array([[1.0, 2, 3], [value] * 3]))


def test_minkowski__refuses_powers_that_overflow():
    measure = measure_of("minkowski", {"p": 10.0}, n_features=2)
    with pytest.raises(DataError, match=r"A\[1\] holds 1e\+40, whose power 10 overflows"):
        measure.prepare(np.array([[1.0, 2], [3, -1e40]]))


def test_distances__of_the_largest_rows_are_finite():
    X = np.array([[1e150] * 3 + [0.0], [-1e150] * 3 + [1.0]])
    for name in TABLE:
        if name != "minkowski":
            assert np.isfinite(distances(name, {}, X)).all()
    assert np.isfinite(distances("minkowski", {"p": 7}, X * 1e-107)).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("euclid", {}, "distance='euclid' is unknown; give .*did you mean 'euclidean'"),
        ("euclidean", {"p": 2}, "distance 'euclidean' takes no options, got 'p'"),
        ("minkowski", {"q": 2}, "option of distance 'minkowski'='q' is unknown; give 'p' or 'w'"),
        ("minkowski", {"p": 0.5}, "p=0.5 is below 1, which gives no metric"),
        ("minkowski", {"p": np.nan}, "p=nan is below 1"),
        ("minkowski", {"p": np.inf}, "p=inf is distance='chebyshev'"),
        ("minkowski", {"p": "2"}, "p='2' is a str; give a number"),
        ("minkowski", {"w": [1, 2]}, r"w has shape \(2,\); give one weight for each of 3"),
        ("minkowski", {"w": [1, -2, 1]}, r"w\[1\]=-2 is out of range"),
        ("minkowski", {"w": [1, np.nan, 1]}, r"w\[1\]=nan is out of range"),
        ("minkowski", {"w": [0, 0, 0]}, "w is all zeros"),
        ("minkowski", {"w": "abc"}, "w='abc' holds no numbers"),
    ],
)
def test_measure_of__refuses_names_and_options(name, options, message):
    with pytest.raises(SpecError, match=message):
        measure_of(name, options, n_features=3)
