"""Every benchmark at toy size: its structure, and its claims that are not timings."""

import importlib
import time

import naive
import numpy as np
import pytest

import benchmarks
from benchmarks import (
    answers,
    capped,
    gathered,
    growth,
    missing,
    network,
    out_of_core,
    perception,
    synthetic,
)
from benchmarks.data import made_up_ratings
from benchmarks.harness import in_fresh_process, in_turn, ratio, table, worked


def test_in_turn__takes_turns():
    calls = []
    took = in_turn(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert "".join(calls) == "ab" * 4  # the first round is not timed
    assert took.shape == (3, 2)


def test_ratio__is_a_median_over_rounds():
    assert ratio(np.array([1.0, 6.0, 3.0]), np.array([1.0, 2.0, 1.0])) == 3.0


def test_worked__does_not_count_waiting():
    seconds, answer = worked(time.sleep, 0.1)
    assert answer is None
    assert seconds < 0.05


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


def test_mahalanobis__finds_a_mahalanobis_distance():
    X = made_up_ratings(12).X
    skew = X @ np.array([[1.0, 0.5], [0.0, 1.0]])
    Z = np.sqrt(2 * naive.half_squared(skew))
    np.testing.assert_allclose(perception.mahalanobis(X, Z)(X, X), Z, atol=1e-6)


def test_synthetic__compares_with_the_authors_code():
    task = synthetic.synthetic(50)
    assert (task.X.shape, task.X_test.shape) == ((50, 16), (200, 16))
    assert synthetic.judged(task.Z_test, task.Z_test) == pytest.approx((0.0, 1.0))
    assert [row["method"] for row in synthetic.reference(50, task)] == ["constant"]
    assert synthetic.reference(1600, synthetic.synthetic(1600))[1]["s"] == 38.0


def test_capped__tells_linear_from_quadratic():
    rows = [
        {"n": n, "growing, capped": n, "growing, exhaustive": n**2 / 7, "table": n**2}
        for n in (100, 1000)
    ]
    last = capped.with_powers(rows)[1]
    powers = [value for name, value in last.items() if name.startswith("power")]
    assert powers == pytest.approx([1.0, 2.0, 2.0])


def test_network__is_a_symmetric_graph_without_self_links():
    X, weights = network.made_up(300, 1500)
    assert (X.shape, weights.shape, weights.nnz) == ((300, 16), (300, 300), 3000)
    assert abs(weights - weights.T).sum() == 0
    assert weights.diagonal().sum() == 0
    i, j = weights.nonzero()
    assert abs(X[i, 0] - X[j, 0]).mean() < 0.2 < abs(X[i, 1] - X[j, 1]).mean()


def test_missing__hides_the_share_it_says():
    X = np.random.default_rng(0).random((300, 2))
    for hide in missing.HIDDEN.values():
        hidden = hide(X, np.random.default_rng(1))
        assert (hidden == hidden.T).all()
        assert not hidden.diagonal().any()
        assert hidden.mean() == pytest.approx(missing.SHARE, abs=0.1)


@pytest.mark.parametrize("n", [1, 63, 100])
def test_our_root__is_what_the_twin_gathers(n):
    task = synthetic.synthetic(n)
    Z = task.Z
    scan, (left, right, count) = growth.our_root(task, Z)
    scan()
    for f in range(growth.MAX_FEATURES):
        order = np.argsort(task.X[:, f])
        for k in range(n):
            assert left[f, k] == pytest.approx(Z[np.ix_(order[: k + 1], order[: k + 1])].sum())
            assert right[f, k] == pytest.approx(Z[np.ix_(order[k + 1 :], order[k + 1 :])].sum())
            assert count[f, k] == k + 1


# Each benchmark at toy size: what must hold of its rows, timings apart --------------------------


def perception_holds(constant, *others):
    assert [row["method"] for row in others] == [
        "mahalanobis", "city block", "DistanceForest", "oblique"
    ]  # fmt: skip
    assert all(row["ratio MAE/constant"] < 0.6 for row in others)


def connectome_holds(types, cart, ours):
    assert ours["AUC unseen-seen"] > 0.75
    assert ours["AUC unseen-seen"] == pytest.approx(cart["AUC unseen-seen"], abs=0.03)
    assert ours["AP unseen-seen"] == pytest.approx(cart["AP unseen-seen"], abs=0.05)


def synthetic_holds(constant, ours):
    assert ours["MAE"] < 0.9 * constant["MAE"]
    assert ours["Spearman"] > 0.3


def missing_holds(*rows):
    assert [row["hidden"] for row in rows] == list(missing.HIDDEN)
    assert all(row["correlation"] > 0.95 for row in rows[:2])


def growth_holds(reading, *others):
    assert reading["ratio to reading z"] == 1.0
    assert all(row["ms"] > 0 for row in others)


def capped_holds(small, large):
    assert (small["n"], large["n"]) == capped.SIZES["toy"]
    for row in (small, large):
        assert row["ratio MAE capped/exhaustive"] == pytest.approx(1.0, abs=0.2)


def kerf_holds(row):
    assert max(row["centred differs"], row["shifted differs"]) < 1e-13


def out_of_core_holds(*rows):
    passes = [row["pass"] for row in rows]
    assert passes == 3 * list(out_of_core.SHOWN) + ["tasks of 0.05 s", "tasks of 0 s"]
    assert all(row["MB"] > 0.1 for row in rows[:5] if row["pass"] in out_of_core.READING)
    assert all(row["ratio one worker"] > 0 for row in rows[10:15])


def network_holds(row):
    assert row["distance of links"] < row["of other pairs"]
    assert 0.1 < row["peak GB"] < 1.5


def answers_holds(*rows):
    assert [row["z"] for row in rows] == list(answers.NOTIONS)
    assert all(row["ratio gathered"] > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", benchmarks.BENCHMARKS)
def test_benchmark__runs_at_toy_size(name):
    rows = importlib.import_module(f"benchmarks.{name}").run("toy")
    globals()[f"{name}_holds"](*rows)
    assert len(table(rows).splitlines()) == 1 + len(rows)
