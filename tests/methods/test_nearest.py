"""The nearest rows against a stable sort of all distances."""

import numpy as np
import pytest
from benchmarks.harness import in_fresh_process
from hypothesis import given, settings
from hypothesis import strategies as st
from peaks import growth
from small_forests import example, forest_of, points

from dforest import Pairs
from dforest.errors import DataError
from dforest.methods import asked
from dforest.methods.asked import block_bytes
from dforest.methods.nearest import NOBODY, WIDE, keep_nearest


def test_nearest__are_the_first_of_a_stable_sort(monkeypatch):
    X = points()
    forest = forest_of("indicator").fit(X, example("indicator", X)[0])  # many equal distances
    new = points(9, seed=3)
    apart = forest.pairwise(new, X)
    for pairs in (1 << 20, 100, 1):
        monkeypatch.setattr(asked, "PAIRS", pairs)
        distance, index = forest.kneighbors(new, 6)
        np.testing.assert_array_equal(index, np.argsort(apart, axis=1, kind="stable")[:, :6])
        np.testing.assert_array_equal(distance, np.take_along_axis(apart, index, axis=1))
    np.testing.assert_array_equal(forest.kneighbors(new, 6, return_distance=False), index)


def test_nearest__of_the_training_rows_leave_themselves_out():
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    apart = forest.pairwise(X)
    np.fill_diagonal(apart, np.inf)
    index = forest.kneighbors(n_neighbors=39)[1]
    np.testing.assert_array_equal(index, np.argsort(apart, axis=1, kind="stable")[:, :39])


def test_nearest__of_trees_that_know_nothing_are_the_first_rows_at_nan():
    X = points()
    few = Pairs([38], [39], [1.0])
    forest = forest_of("pairs", n_estimators=1, max_samples=2, bootstrap=False, random_state=1)
    forest.fit(X, few)
    assert np.isnan(forest.pairwise(X)).all()
    distance, index = forest.kneighbors(n_neighbors=3)
    assert np.isnan(distance).all()
    assert index[[0, 1, 20]].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 2]]


@pytest.mark.parametrize(("X", "k", "most"), [(None, 40, 39), (points(2), 41, 40)])
def test_nearest__refuses_more_neighbours_than_there_are(X, k, most):
    rows = points()
    forest = forest_of().fit(rows, example("precomputed", rows)[0])
    with pytest.raises(DataError, match=f"from 1 to {most}, got {k}"):
        forest.kneighbors(X, k)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_keep_nearest__keeps_the_same_in_blocks_of_any_size(data):
    n, b = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 30))
    k = data.draw(st.integers(1, b - 1))
    value = st.sampled_from([0.0, 1.0, 2.0, -1.0, np.nan])
    apart = np.array(data.draw(st.lists(value, min_size=n * b, max_size=n * b))).reshape(n, b)
    own = np.array(data.draw(st.lists(st.integers(-1, b - 1), min_size=n, max_size=n)))
    ends = sorted({0, b, *data.draw(st.lists(st.integers(0, b), max_size=4))})
    best, index = np.full((n, k), np.inf), np.full((n, k), NOBODY)
    for left, right in data.draw(st.permutations(list(zip(ends[:-1], ends[1:])))):
        keep_nearest(np.ascontiguousarray(apart[:, left:right]), left, own, best, index)
    for i in range(n):
        others = np.array([j for j in range(b) if j != own[i]])
        order = others[np.argsort(apart[i, others], kind="stable")][:k]  # NaN last
        assert sorted(index[i]) == sorted(order)
        found = dict(zip(index[i].tolist(), best[i]))
        np.testing.assert_array_equal(
            [found[j] for j in order], np.where(np.isnan(apart[i, order]), np.inf, apart[i, order])
        )


def peaks(n):
    """Bytes by which a process grows for one block, and for the neighbours of n rows among n."""
    X = np.random.default_rng(0).random((n, 3))
    options = {"n_estimators": 4, "min_samples_leaf": 50, "n_jobs": 2}
    forest = forest_of("half_squared", **options).fit(X, X[:, 0])
    forest.kneighbors(X[:10])  # compiled
    rows = slice(0, asked.ROWS)
    with growth() as block:
        asked.answer(asked.Asked(forest._forest, forest._forest.leaves), rows, rows)
    with growth() as whole:
        distance, _ = forest.kneighbors(n_neighbors=5)
    assert (np.diff(distance, axis=1) >= 0).all()
    return block[0], whole[0], int(forest.n_leaves_.max())


@pytest.mark.slow
def test_nearest__of_many_rows_take_the_memory_of_blocks():
    n = 10_000
    (block, whole, n_leaves), _ = in_fresh_process(peaks, n)
    room = block_bytes(asked.ROWS, asked.ROWS, 4, n_leaves)
    assert block < room + (4 << 20)
    kept = 2 * 5 * 16 * n + 4 * 4 * n  # answers, as parts and together; leaves in another order
    wide = block_bytes(asked.ROWS, WIDE * asked.PAIRS // asked.ROWS, 4, n_leaves)
    assert whole < 2 * wide + kept + (16 << 20)
    assert whole < 8 * n * n / 4
