"""Every benchmark at toy size: its structure, and its claims that are not timings."""

import naive
import numpy as np
import pytest

from benchmarks import capped, connectome, gathered, growth, network, perception, synthetic
from benchmarks.data import made_up_ratings
from benchmarks.harness import in_fresh_process, paired, table


def test_paired__takes_turns():
    calls = []
    took = paired(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert "".join(calls) == "ab" * 4  # the first round is not timed
    assert min(took) > 0


def test_table__puts_ratios_first_and_leaves_gaps():
    lines = table([{"what": "a", "ms": 1234.5}, {"ratio b/a": 2.0, "what": "bb"}]).splitlines()
    assert [line.split() for line in lines] == [
        ["ratio", "b/a", "what", "ms"],
        ["a", "1,234"],
        ["2", "bb"],
    ]


@pytest.mark.slow
def test_in_fresh_process__reports_the_peak():
    total, peak = in_fresh_process(np.sum, np.ones(4))
    assert total == 4
    assert 10e6 < peak < 10e9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("min_rows", [1, 4])
def test_gathered__grows_the_tree_of_equation_1(seed, min_rows):
    rng = np.random.default_rng(seed)
    X, z = rng.random((40, 3)), rng.normal(size=(40, 40)).astype(np.float32)
    z += z.T
    rows = np.arange(40, dtype=np.uint32)
    tree = gathered.Grown(*gathered.grow(X.T.copy(), z, rows, seed, 3, min_rows))
    slow = naive.grow(X, z, min_samples_leaf=min_rows)
    gains = [[g for g in found if not np.isnan(g)] for found in (tree.gain, [s.gain for s in slow])]
    assert sorted(gains[0]) == pytest.approx(sorted(gains[1]), rel=1e-4)
    leaf = naive.apply(slow, X)
    groups = [tree.rows[a:b] for a, b in zip(tree.starts[:-1], tree.starts[1:], strict=True)]
    assert {frozenset(g) for g in groups} == {
        frozenset(np.flatnonzero(leaf == k)) for k in set(leaf)
    }
    seats = leaf[[g[0] for g in groups]]
    expected = naive.leaf_table(slow, X, z).mean[np.ix_(seats, seats)]
    np.testing.assert_allclose(gathered.leaf_table(z, tree.rows, tree.starts), expected, atol=1e-5)


def test_gathered__skips_constant_features():
    X = np.column_stack([np.ones((20, 7)), np.arange(20.0)])
    z = naive.absolute(np.arange(20) >= 10).astype(np.float32)
    rows = np.arange(20, dtype=np.uint32)
    tree = gathered.Grown(*gathered.grow(X.T.copy(), z, rows, 0, 1, 1))
    assert tree.feature.tolist() == [7, -1, -1]
    assert tree.threshold[0] == 9.5


@pytest.mark.parametrize("n", [1, 63, 64, 200])
def test_read__is_the_sum(n):
    z = np.random.default_rng(n).random((n, n), dtype=np.float32)
    assert gathered.read(z) == pytest.approx(z.sum(dtype=float), rel=1e-6)


def test_perception__linear_fits_beat_the_constant_mean():
    rows = perception.compare(perception.BASELINES, "toy")
    assert [row["method"] for row in rows] == ["constant", "mahalanobis", "city block"]
    assert all(row["ratio MAE/constant"] < 0.5 for row in rows[1:])


def test_mahalanobis__finds_a_mahalanobis_distance():
    X = made_up_ratings(12).X
    skew = X @ np.array([[1.0, 0.5], [0.0, 1.0]])
    Z = np.sqrt(2 * naive.half_squared(skew))
    np.testing.assert_allclose(perception.mahalanobis(X, Z)(X, X), Z, atol=1e-6)


def test_connectome__features_tell_links():
    rows = connectome.compare(connectome.BASELINES, "toy")
    assert [row["method"] for row in rows] == list(connectome.BASELINES)
    assert all(row["AUC unseen-seen"] > 0.6 for row in rows)


def test_synthetic__compares_with_the_authors_code():
    task = synthetic.synthetic(50)
    assert (task.X.shape, task.X_test.shape) == ((50, 16), (200, 16))
    assert synthetic.judged(task.Z_test, task.Z_test) == pytest.approx((0.0, 1.0))
    assert [row["method"] for row in synthetic.reference(50, task)] == ["constant"]
    assert synthetic.reference(1600, synthetic.synthetic(1600))[1]["s"] == 38.0


def test_growth__gathering_is_dearer_than_reading():
    rows = growth.root_against_reading("toy")
    assert [row["what"] for row in rows] == ["reading z", "root, gathering"]


def test_capped__tells_linear_from_quadratic():
    sizes = [100, 1000]
    rows = [{"n": n, "s a tree, capped": n, "s a tree, exhaustive": n**2 / 7} for n in sizes]
    last = capped.with_powers(rows)[1]
    assert (last["power, capped"], last["power, exhaustive"]) == pytest.approx((1.0, 2.0))


def test_network__is_a_symmetric_graph_without_self_links():
    X, weights = network.made_up(300, 1500)
    assert (X.shape, weights.shape, weights.nnz) == ((300, 16), (300, 300), 3000)
    assert abs(weights - weights.T).sum() == 0
    assert weights.diagonal().sum() == 0
    i, j = weights.nonzero()
    assert abs(X[i, 0] - X[j, 0]).mean() < 0.2 < abs(X[i, 1] - X[j, 1]).mean()
