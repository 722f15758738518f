"""Kernels of centred and uniform forests: against all trees, random trees, and Scornet's sums."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammainc

from dforest.errors import SpecError
from dforest.methods import proximity
from dforest.methods.proximity import centred, matrix, regress, uniform
from dforest.run.here import Here

HERE = Here(1)
KINDS = {
    "centred": centred,
    "uniform": uniform,
    "shifted": lambda depth, d: uniform(depth, d, is_shifted=True),
}
each = pytest.mark.parametrize("kind", KINDS)


def points(n, d, seed=0):
    return np.random.default_rng(seed).random((n, d))


def kernel_of(kind, XA, XB=None, depth=3):
    XA = np.atleast_2d(XA)
    return matrix(
        KINDS[kind](depth, XA.shape[1]), XA, None if XB is None else np.atleast_2d(XB), HERE
    )


# Slow twins --------------------------------------------------------------------------------------


def centred_cells(choices, X):
    """Cells of rows in a centred tree whose node i, of the complete tree, splits on choices[i]."""
    numbers = []
    for x in X:
        low, high, node = np.zeros(len(x)), np.ones(len(x)), 0
        while node < len(choices):
            f = choices[node]
            middle = (low[f] + high[f]) / 2
            is_left = x[f] <= middle  # ]a, b] holds its upper end
            (high if is_left else low)[f] = middle
            node = 2 * node + (1 if is_left else 2)
        numbers.append(node)
    return np.array(numbers)


def all_centred_trees(X, depth):
    """Cells (trees, n) in every centred tree there is."""
    features = range(X.shape[1])
    return np.array([centred_cells(c, X) for c in itertools.product(features, repeat=2**depth - 1)])


def multinomial_sum(stay, x, z, depth):
    """Scornet's sum over how many splits fall on each feature."""
    d, total = len(x), 0.0
    for counts in itertools.product(range(depth + 1), repeat=d):
        if sum(counts) == depth:
            ways = math.factorial(depth) / math.prod(map(math.factorial, counts))
            total += ways * math.prod(map(stay, counts, x, z))
    return total / d**depth


def stay_centred(m, x, z):
    return float(max(math.ceil(2**m * x), 1) == max(math.ceil(2**m * z), 1))


def stay_shifted(m, x, z):
    w = abs(x - z)
    return 1.0 - (w * sum((-math.log(w)) ** j / math.factorial(j) for j in range(m)) if w else 0.0)


def stay_uniform(m, x, z):
    return kernel_of("uniform", [x], [z], m)[0, 0]


def stays_uniform(m, x, z):
    return np.diag(kernel_of("uniform", x[:, None], z[:, None], m))


STAY = {"centred": stay_centred, "uniform": stay_uniform, "shifted": stay_shifted}


# Against trees -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "depth"), [(1, 3), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_centred__is_the_share_of_all_trees(d, depth):
    X = np.concatenate([points(20, d), [[0.0] * d, [0.5] * d, [0.25] * d, [1.0] * d]])
    cells = all_centred_trees(X, depth)
    expected = (cells[:, :, None] == cells[:, None]).mean(axis=0)
    np.testing.assert_allclose(kernel_of("centred", X, depth=depth), expected, atol=1e-14)


def test_regress__is_kerf_over_all_trees():
    X, new = points(25, 2), points(9, 2, seed=1)
    y = np.random.default_rng(2).normal(size=(25, 2))
    fitted, asked = all_centred_trees(X, 3), all_centred_trees(new, 3)
    shared = asked[:, :, None] == fitted[:, None]  # (trees, a, n)
    sums, counts = shared.sum(axis=0) @ y, shared.sum(axis=(0, 2))  # the paper's equation (10)
    assert counts.all()
    found = regress(centred(3, 2), new, X, y, HERE)
    np.testing.assert_allclose(found, sums / counts[:, None], atol=1e-13)


def test_uniform__is_the_share_of_random_trees():
    rng, trees, depth = np.random.default_rng(5), 40_000, 4
    X = np.array([[0.1, 0.5], [0.3, 0.55], [0.35, 0.9], [0.0, 1.0]])
    for x, z in itertools.combinations(X, 2):
        low, high, together = np.zeros((trees, 2)), np.ones((trees, 2)), np.ones(trees, bool)
        for _ in range(depth):  # only the cell of x is followed
            f = rng.integers(2, size=trees)
            each, cut = np.arange(trees), rng.random(trees)
            cut = low[each, f] + cut * (high[each, f] - low[each, f])
            is_left = x[f] <= cut
            together &= is_left == (z[f] <= cut)
            high[each, f] = np.where(is_left, cut, high[each, f])
            low[each, f] = np.where(is_left, low[each, f], cut)
        expected = kernel_of("uniform", x, z, depth)[0, 0]
        error = np.sqrt(expected * (1 - expected) / trees)
        assert abs(together.mean() - expected) < 4.5 * error


@pytest.mark.parametrize("m", [1, 2, 3, 5, 9, 20])
@pytest.mark.parametrize(
    ("x", "z"), [(0.3, 0.45), (0.02, 0.9), (0.0, 0.6), (0.4, 1.0), (0.71, 0.73)]
)
def test_uniform__is_a_first_cut_and_then_the_rest(x, z, m):
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = (nodes + 1) / 2, weights / 2
    left, right = x * nodes, z + (1 - z) * nodes  # places of the first cut, on either side
    below = stays_uniform(m - 1, (x - left) / (1 - left), (z - left) / (1 - left))
    above = stays_uniform(m - 1, x / right, z / right)
    expected = x * (weights @ below) + (1 - z) * (weights @ above)
    assert stay_uniform(m, x, z) == pytest.approx(expected, rel=1e-9, abs=1e-300)


# Against sums ------------------------------------------------------------------------------------


@each
@given(data=st.data(), d=st.integers(1, 3), depth=st.integers(0, 5))
@settings(deadline=None, max_examples=60)
def test_kernel__is_the_multinomial_sum(kind, data, d, depth):
    value = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
    row = st.lists(value, min_size=d, max_size=d)
    x, z = data.draw(row), data.draw(row)
    expected = multinomial_sum(STAY[kind], x, z, depth)
    assert kernel_of(kind, x, z, depth)[0, 0] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    ("kind", "x", "z", "depth", "expected"),
    [
        ("centred", (0.3, 0.7), (0.4, 0.6), 3, 0.75),
        ("centred", (0.1, 0.9, 0.5), (0.12, 0.88, 0.55), 4, 0.19753086419753085),
        ("centred", (0.5, 0.5), (0.5, 0.51), 2, 0.25),
        ("centred", (0.2,), (0.24,), 3, 1.0),
        ("uniform", (0.0,), (0.3,), 1, 0.7),
        ("uniform", (0.0,), (0.3,), 2, 0.33880815870221925),
        ("uniform", (0.0, 0.0), (0.3, 0.1), 3, 0.3559076657265835),
        ("uniform", (0.0,) * 3, (0.05, 0.2, 0.4), 4, 0.24177181630715278),
        ("shifted", (0.5, 0.9), (0.2, 1.0), 3, 0.3559076657265835),
        ("uniform", (0.5,), (0.7,), 2, 0.5900355751002645),
        ("uniform", (0.2,), (0.6,), 2, 0.30641232996791995),
        ("uniform", (0.45,), (0.5,), 2, 0.8854507909342217),
    ],
)
def test_kernel__known_answers(kind, x, z, depth, expected):
    assert kernel_of(kind, x, z, depth)[0, 0] == pytest.approx(expected, abs=1e-14)


@given(x=st.floats(0, 1), z=st.floats(0, 1))
@settings(deadline=None)
def test_uniform__of_two_cuts_is_scornets_lemma(x, z):
    x, z = min(x, z), max(x, z)
    w = z - x
    expected = 1 - w + (w * math.log(z * (1 - x)) if w else 0)
    assert stay_uniform(2, x, z) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("depth", [1, 2, 5, 9, 20])
@pytest.mark.parametrize("z", [0.999, 0.9, 0.3, 1e-3, 1e-12, 1e-200])
def test_uniform__keeps_its_digits_where_it_is_small(depth, z):
    expected = gammainc(depth, -math.log(z))  # the chance that Poisson(-log z) is depth or more
    rel = 1e-13 * (1 + abs(math.log(expected)))
    assert stay_uniform(depth, 0.0, z) == pytest.approx(expected, rel=rel, abs=1e-290)


# What kernels are --------------------------------------------------------------------------------


@each
@pytest.mark.parametrize(("d", "depth"), [(1, 0), (1, 7), (3, 5), (20, 9), (4, 20)])
def test_kernel__is_symmetric_and_positive_semi_definite(kind, d, depth):
    X = np.concatenate([points(70, d), points(3, d)])  # three rows twice
    X[0], X[1] = 0.0, 1.0
    K = kernel_of(kind, X, depth=depth)
    assert (K == K.T).all()
    assert K.min() >= 0
    np.testing.assert_allclose(np.diag(K), 1, rtol=1e-13)
    np.testing.assert_allclose(K[2, 72], 1, rtol=1e-13)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    if depth == 0:
        np.testing.assert_array_equal(K, 1.0)


@each
def test_kernel__falls_with_depth_and_knows_no_order_of_features(kind):
    X, z = points(40, 4), points(1, 4, seed=1)
    values = np.array([kernel_of(kind, X, z, depth)[:, 0] for depth in range(12)])
    assert (np.diff(values, axis=0) <= 1e-15).all()
    turned = kernel_of(kind, X[:, ::-1], z[:, ::-1], 11)[:, 0]
    np.testing.assert_allclose(turned, values[11], rtol=1e-12)


def test_uniform__knows_no_direction():
    X = points(30, 3)
    np.testing.assert_allclose(
        kernel_of("uniform", 1 - X, depth=6), kernel_of("uniform", X, depth=6), rtol=1e-11
    )


@each
@pytest.mark.parametrize("depth", [3, 62])
def test_kernel__of_rows_that_hardly_differ(kind, depth):
    z = [0.5, np.nextafter(0.5, 1), 0.5 + 1e-9, 0.0, 5e-324, 1e-300, 1.0, np.nextafter(1, 0)]
    K = kernel_of(kind, np.array(z)[:, None], depth=depth)
    assert np.isfinite(K).all()
    assert ((K >= 0) & (K <= 1 + 1e-14)).all()
    if kind == "uniform" and depth == 3:
        assert K[0, 1] == pytest.approx(1, abs=1e-13)
    if kind == "centred":
        assert K[0, 1] == 0.0  # a border lies between them, however near
        assert K[3, 4] == 1.0


# Blocks ------------------------------------------------------------------------------------------


@each
def test_kernel__has_the_same_bits_for_two_rows_alone(kind, monkeypatch):
    X, new = points(67, 3), points(41, 3, seed=1)
    whole, own = kernel_of(kind, new, X, 6), kernel_of(kind, X, depth=6)
    for i, j in [(0, 0), (3, 66), (40, 31), (17, 33)]:
        assert kernel_of(kind, new[i], X[j], 6)[0, 0] == whole[i, j]
        assert kernel_of(kind, X[i], X[j], 6)[0, 0] == own[i, j]
    y, kernel = points(67, 2, seed=2), KINDS[kind](6, 3)
    told = regress(kernel, new, X, y, HERE)
    monkeypatch.setattr(proximity, "BLOCK_STEPS", 1)
    np.testing.assert_array_equal(matrix(kernel, new, X, Here(2)), whole)
    np.testing.assert_array_equal(matrix(kernel, X, None, Here(2)), own)
    np.testing.assert_array_equal(matrix(kernel, X, X, Here(2)), own)
    np.testing.assert_array_equal(regress(kernel, new, X, y, Here(2)), told)


@each
def test_regress__is_a_mean_weighted_by_the_kernel(kind):
    X, new, y = points(50, 2), points(20, 2, seed=1), points(50, 3, seed=2)
    K = kernel_of(kind, new, X, 4)
    found = regress(KINDS[kind](4, 2), new, X, y, HERE)
    np.testing.assert_allclose(found, K @ y / K.sum(axis=1, keepdims=True), rtol=1e-12)
    at_depth_0 = regress(KINDS[kind](0, 2), new, X, y, HERE)
    np.testing.assert_allclose(at_depth_0, np.tile(y.mean(axis=0), (20, 1)))


def test_regress__of_a_row_in_a_cell_of_its_own_tells_the_mean():
    X, y = np.array([[0.1], [0.2], [0.3]]), np.array([[1.0], [2.0], [6.0]])
    found = regress(centred(3, 1), np.array([[0.9], [0.1]]), X, y, HERE)
    np.testing.assert_array_equal(found, [[3.0], [1.0]])
    far = regress(uniform(20, 1), np.array([[0.9]]), X, y, HERE)  # weights of 1e-15 still weigh
    assert 2 < far[0, 0] < 6


def test_matrix__that_does_not_fit_into_memory_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(proximity, "memory_bytes", lambda: 2 * 8 * 40 * 40)
    assert kernel_of("centred", points(40, 2)).shape == (40, 40)
    with pytest.raises(SpecError, match="all 41 x 40 values .* ask for fewer rows at once"):
        kernel_of("centred", points(41, 2), points(40, 2))
