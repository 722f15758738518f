"""Forests on stored matrices have the bits of forests on the same matrix held in memory."""

import dataclasses
import shutil

import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from small_forests import bits, example, forest_of, points, slow_twin

import dforest as df
from dforest.errors import DataError, RunError, SpecError, StoreError
from dforest.estimators import forests, inputs
from dforest.methods import costs, fitting, stored
from dforest.methods.costs import largest_pool, matrix_cost
from dforest.run.client import check_visible
from dforest.run.here import Here
from dforest.run.memory import Room
from dforest.store.matrix import MatrixStore, MatrixWriter

N = 45


def store(path, z, tile=8, symmetric="upper", ids=None):
    """Store a matrix tile by tile."""
    with MatrixWriter(path, len(z), tile=tile, symmetric=symmetric, ids=ids) as writer:
        for a, b in writer.tiles():
            writer.write_tile(a, b, np.float32(z[writer.span(a, b)]))
        writer.publish()
    return MatrixStore(path)


@pytest.fixture
def never_held(monkeypatch):
    """No store is read whole, as if none fitted into memory."""
    monkeypatch.setattr(inputs, "fits", lambda n_rows, room: False)


@pytest.fixture(scope="module", params=["z", "unknown"])
def data(request):
    """Features and symmetric distances, some unknown for one half of the tests."""
    X = points(N)
    z = example("precomputed", X)[0]
    if request.param == "unknown":
        hidden = np.random.default_rng(2).random(z.shape) < 0.3
        z = np.where(hidden | hidden.T, np.nan, z)
    return X, z


@pytest.mark.parametrize("symmetric", ["upper", "full", "none"])
@pytest.mark.parametrize("leaf_rows", ["in_bag", "out_of_bag", "all"])
@pytest.mark.parametrize("self_pairs", [True, False])
def test_fit__on_a_store_has_the_bits_of_memory(
    data, tmp_path, never_held, symmetric, leaf_rows, self_pairs
):
    X, z = data
    options = {"leaf_rows": leaf_rows, "self_pairs": self_pairs}
    held, pooled = (forest_of(**options, pool_size=size).fit(X, z) for size in (None, 20))
    for tile in (8, 45):
        kept = store(tmp_path / f"z{tile}", z, tile, symmetric)
        assert bits(forest_of(**options).fit(X, kept)) == bits(held)
        found = forest_of(**options, pool_size=20).fit(X, kept)
        assert bits(found) == bits(pooled)
    assert found.pool_report_ == pooled.pool_report_


def test_fit__sums_blocks_of_many_sizes_to_the_same_bits(data, tmp_path, never_held, monkeypatch):
    X, z = data
    kept = store(tmp_path / "z", z, tile=4)
    options = {"pool_size": 20, "leaf_rows": "all", "n_estimators": 7}
    expected = bits(forest_of(**options).fit(X, z))
    for side, trees, parts, threads in ((4, 1, 50, 2), (8, 3, 5, 1), (1_000, 100, 1, 2)):
        monkeypatch.setattr(stored, "block_side", lambda n_rows, tile, side=side: side)
        monkeypatch.setattr(costs, "MOST_TREES", trees)
        monkeypatch.setattr(costs, "PARTS", parts)
        assert bits(forest_of(**options, n_jobs=threads).fit(X, kept)) == expected


def test_fit__on_a_store_agrees_with_the_slow_twin(data, tmp_path, never_held):
    X, z = data
    forest = forest_of(pool_size=30, leaf_rows="all").fit(X, store(tmp_path / "z", z))
    for table, twin in zip(forest._forest.tables, slow_twin(forest, X, z)[1], strict=True):
        every = np.arange(len(twin.mean), dtype=np.int32)
        found = df.tree.leaves.grid(table, every, every)[0]
        np.testing.assert_allclose(found, twin.mean, rtol=1e-5, atol=1e-6)


def test_fit__matches_a_store_by_ids(data, tmp_path, never_held):
    X, z = data
    order = np.random.default_rng(3).permutation(N)
    names = np.array([f"row{k}" for k in range(N)])
    kept = store(tmp_path / "z", z[np.ix_(order, order)], ids=names[order])
    with df.store.dataset.DatasetWriter(tmp_path / "x", dtype="float64") as writer:
        writer.write(X, ids=names)
        writer.publish()
    for options in ({}, {"pool_size": 20, "leaf_rows": "all"}):
        expected = forest_of(**options).fit(X, z)
        assert bits(forest_of(**options).fit(tmp_path / "x", kept)) == bits(expected)


def test_refit_leaves__streams_a_store_of_other_rows(data, tmp_path, never_held):
    X, z = data
    others = points(30, seed=5)
    apart = example("precomputed", others)[0]
    for leaf_rows, rows, distances in (
        ("all", others, apart),
        ("in_bag", X, z),
        ("out_of_bag", X, z),
    ):
        one, two = (forest_of("half_squared").fit(X, X) for _ in range(2))
        one.refit_leaves(rows, distances, leaf_rows=leaf_rows)
        two.refit_leaves(rows, store(tmp_path / leaf_rows, distances), leaf_rows=leaf_rows)
        assert bits(one) == bits(two)


def test_cross_validate__slices_a_store_both_ways(data, tmp_path, never_held):
    X, z = data
    forest = forest_of()
    kept = df.cross_validate(forest, X, store(tmp_path / "z", z), cv=3)
    held = df.cross_validate(forest, X, z, cv=3)
    for name in ("test_score", "seen_score"):
        np.testing.assert_array_equal(kept[name], held[name])


@pytest.mark.slow
def test_fit__on_workers_that_share_a_store(data, tmp_path, monkeypatch):
    monkeypatch.setenv("DFOREST_SCRATCH", str(tmp_path / "scratch"))
    X, z = data
    kept = store(tmp_path / "z", z)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as workers, Client(workers, set_as_default=False) as client:
        for own in ({}, {"pool_size": 20}, {"pool_size": 20, "leaf_rows": "all"}):
            expected = forest_of(**own).fit(X, z)
            assert bits(forest_of(**own).fit(X, kept, client=client)) == bits(expected)
    assert list((tmp_path / "scratch").iterdir()) == []


# The pool and its size -------------------------------------------------------------------------


def test_fit__sizes_the_pool_by_memory(tmp_path, never_held, monkeypatch):
    X = points(N)
    z = example("precomputed", X)[0]
    room = Room(matrix_cost(30, 3, 2_000, 1 << 30, 5).of(2), 2)
    monkeypatch.setattr(forests, "room_of", lambda runner: room)
    forest = forest_of().fit(X, store(tmp_path / "z", z))
    assert forest._forest.recipe.pool_size == 30
    assert bits(forest) == bits(forest_of(pool_size=30).fit(X, z))
    assert forest.fit(X, z).pool_report_ is None  # in memory all rows are drawn from


def test_largest_pool__is_the_largest_that_fits():
    for total in (10**5, 10**7, 10**9):
        room = Room(total, 3)
        found = largest_pool(10**5, room, 5, 2_000, 1 << 30, 100)
        fitted, more = (matrix_cost(n, 5, 2_000, 1 << 30, 100).of(3) for n in (found, found + 1))
        assert fitted <= total < more
    assert largest_pool(50, room, 5, 2_000, 1 << 30, 100) == 50


def test_pool_report__tells_a_pool_that_decides_from_one_that_does_not():
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    z = abs(X[:, :1] - X[:, 0])
    options = {"max_features": None, "n_estimators": 20, "random_state": 0}
    small, large = (
        df.DistanceForest(pool_size=size, **options).fit(X, z).pool_report_ for size in (30, 500)
    )
    assert small["moved"] > 3 * large["moved"]
    assert large["spread"] == pytest.approx(z.std(), rel=0.1)
    assert (large["pool"], large["half"], large["trees"]) == (500, 250, 20)


def test_pool_report__is_about_chance_alone_where_the_pool_is_large():
    rng = np.random.default_rng(1)
    X = rng.random((2_000, 1))
    z = abs(X - X[:, 0])
    options = {"max_samples": 60, "n_estimators": 30, "random_state": 0, "pool_size": 1_990}
    found = df.DistanceForest(**options).fit(X, z).pool_report_
    assert found["moved"] < 1.6 * found["by_chance"]


# Refusals ----------------------------------------------------------------------------------------


def test_fit__refuses_a_store_that_is_not_symmetric(tmp_path, never_held):
    X = points(N)
    z = example("precomputed", X)[0]
    z[3, 30] += 1.0
    kept = store(tmp_path / "z", z, symmetric="none")
    for pool_size in (None, N - 1):
        with pytest.raises(DataError, match=r"z\[3, 30\] = .* but z\[30, 3\]"):
            forest_of(pool_size=pool_size, leaf_rows="all").fit(X, kept)


@pytest.mark.parametrize("pool_size", [None, 20])
def test_fit__refuses_a_pool_without_a_known_distance(tmp_path, never_held, pool_size):
    X = points(N)
    kept = store(tmp_path / "z", np.full((N, N), np.nan))
    with pytest.raises(DataError, match="none of the distances between the .* rows .* is known"):
        forest_of(pool_size=pool_size, leaf_rows="all").fit(X, kept)


def test_fit__refuses_a_store_of_other_rows(tmp_path, never_held):
    X = points(N)
    kept = store(tmp_path / "z", example("precomputed", X)[0])
    with pytest.raises(DataError, match=r"X has 44 rows, Z is \(45, 45\)"):
        forest_of().fit(X[1:], kept)


def test_fit__refuses_tables_that_no_task_can_hold(data, tmp_path, never_held, monkeypatch):
    X, z = data
    forest, kept = forest_of("half_squared").fit(X, X), store(tmp_path / "z", z)
    monkeypatch.setattr(fitting, "room_of", lambda runner: Room(1_000, 1))
    with pytest.raises(SpecError, match="bytes, .* lower table_budget"):
        forest.refit_leaves(X, kept)
    with pytest.raises(SpecError, match="pool of 20 rows would take .* lower pool_size"):
        forest_of(pool_size=20, leaf_rows="all").fit(X, kept)


@pytest.mark.parametrize("changed", [{"n_estimators": 0}, {"max_split_rows": "x"}])
def test_fit__checks_what_sizes_the_pool(data, tmp_path, never_held, changed):
    X, z = data
    with pytest.raises(SpecError, match=next(iter(changed))):
        forest_of(**changed).fit(X, store(tmp_path / "z", z))


@pytest.mark.parametrize("leaf_rows", ["out_of_bag", "all"])
def test_fit__takes_sparse_rows_with_a_store(data, tmp_path, never_held, leaf_rows):
    X, z = data
    options = {"pool_size": 20, "leaf_rows": leaf_rows}
    X = X * (points(N, seed=8) > 0)
    found = forest_of(**options).fit(sparse.csr_array(X), store(tmp_path / "z", z))
    assert bits(found) == bits(forest_of(**options).fit(X, z))


def test_fit__refuses_workers_that_do_not_see_the_store(data, tmp_path, monkeypatch):
    X, z = data
    kept = store(tmp_path / "z", z)
    monkeypatch.setattr(stored, "check_visible", lambda client, path: check_visible(client, "/no"))
    options = {"processes": False, "dashboard_address": "127.0.0.1:0", "set_as_default": False}
    with Client(**options) as client, pytest.raises(RunError, match="does not see /no; use a"):
        forest_of().fit(X, kept, client=client)


def test_store_of__notices_another_store_at_the_same_path(data, tmp_path):
    given = stored.stored_given(store(tmp_path / "z", data[1]), np.arange(N))
    assert stored.store_of(given).tile == 8
    shutil.rmtree(tmp_path / "z")
    other = stored.stored_given(store(tmp_path / "z", data[1], tile=16), np.arange(N))
    assert stored.store_of(other).tile == 16
    with pytest.raises(StoreError, match="written again since"):
        stored.store_of(given)


def test_groups_within__share_trees_out_by_their_sums():
    one = costs.COPIES * costs.sum_bytes(10, has_unknown=False)
    assert costs.groups_within(np.full(5, 10), False, 2 * one) == [
        range(2),
        range(2, 4),
        range(4, 5),
    ]
    assert costs.groups_within(np.full(5, 10), False, 1) == [range(t, t + 1) for t in range(5)]
    many = costs.groups_within(np.ones(40, int), True, 10**9)
    assert [len(group) for group in many] == [costs.MOST_TREES, costs.MOST_TREES, 8]


def test_stored_given__reads_nothing(data, tmp_path):
    given = stored.stored_given(store(tmp_path / "z", data[1]), np.arange(N))
    assert given.is_stored
    assert given.n_rows == N
    with stored.pooled(given, np.array([3, 5, 40]), Here(1)) as within:
        wanted = np.float32(data[1][np.ix_([3, 5, 40], [3, 5, 40])])
        np.testing.assert_array_equal(within.arrays["z"], wanted)
        assert not within.is_stored
    assert dataclasses.asdict(given)["notion"] == "precomputed"
