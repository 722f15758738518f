"""The same forest without a cluster, and with one or two worker processes."""

import pathlib

import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from small_forests import bits, example, fit_in_worker, forest_of, points

from dforest.methods.forest import keeping
from dforest.methods.material import Held, Mapped, Material, within_reach
from dforest.methods.notions import check_given
from dforest.run import cluster as run_cluster
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.store.receipts import Receipts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[1, 2], ids=["one-worker", "two-workers"])
def client(request):
    """Client of worker processes."""
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        LocalCluster(n_workers=request.param, processes=True, **options) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Scratch folder that must be empty in the end."""
    monkeypatch.setenv("DFOREST_SCRATCH", str(tmp_path / "scratch"))
    yield tmp_path / "scratch"
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("notion", ["precomputed", "graph", "indicator"])
def test_fit__on_workers_has_the_bits_of_this_process(client, scratch, notion):
    X = points()
    Z = example(notion, X)[0]
    expected = forest_of(notion, n_estimators=40).fit(X, Z)
    found = forest_of(notion, n_estimators=40).fit(X, Z, client=client)
    assert bits(found) == bits(expected)
    graph = example("graph", X)[0]
    expected.refit_leaves(X, graph)
    found.refit_leaves(X, graph, client=client)
    assert bits(found) == bits(expected)


def test_fit__on_workers_takes_pools_and_sparse_rows(client, scratch):
    X = points() * (points(seed=8) > 0)
    z = example("precomputed", X)[0]
    options = {"pool_size": 20, "leaf_rows": "all", "n_estimators": 4}
    expected = forest_of(**options).fit(X, z)
    found = forest_of(**options).fit(sparse.csr_array(X), z, client=client)
    assert bits(found) == bits(expected)


def test_fit__uses_the_active_client(client, scratch, monkeypatch):
    X = points()
    z = example("precomputed", X)[0]
    ran = []
    whole = Cluster.run
    monkeypatch.setattr(Cluster, "run", lambda self, job: ran.append(job.name) or whole(self, job))
    with client.as_current():
        found = forest_of().fit(X, z)
        answers = found.pairwise(X)
    assert ran == ["grow-trees", "tabulate-leaves", "pairwise"]
    np.testing.assert_array_equal(answers, found.pairwise(X))


def test_fit__sends_tasks_that_weigh_little(client, scratch, monkeypatch):
    monkeypatch.setattr(run_cluster, "LUGGAGE", 3_000)  # X alone has 96,000 bytes
    X = points(3_000, 4)
    forest = forest_of("absolute", pool_size=2_000, max_depth=3).fit(X, X[:, 0], client=client)
    assert forest._forest.leaves.shape == (3_000, 5)


def test_fit__on_workers_keeps_receipts(client, scratch, tmp_path, monkeypatch):
    X = points()
    z = example("precomputed", X)[0]
    with keeping(Receipts(tmp_path / "kept", "job")):
        first = forest_of(n_estimators=40).fit(X, z, client=client)
        assert len(list((tmp_path / "kept").rglob("*.npz"))) == 40
        monkeypatch.setattr(Receipts, "write", lambda *_: pytest.fail("done again"))
        second = forest_of(n_estimators=40).fit(X, z)  # in this process: the same receipts
    assert bits(first) == bits(second)


def test_fit__inside_a_worker_is_serial_and_gives_the_same_bits(client):
    found, runner = client.submit(fit_in_worker, "precomputed", pure=False).result(timeout=300)
    assert runner == "Here(n_jobs=1)"
    X = points()
    assert found == bits(forest_of().fit(X, example("precomputed", X)[0]))


def test_within_reach__maps_what_was_held(client, scratch):
    X = sparse.csr_array(points())
    given = check_given("absolute", points()[:, 0], 40)
    material = Material(X, given)
    with within_reach(material, Here(1)) as source:
        assert source == Held(material)
        assert source.open() is material
    with within_reach(material, Cluster(client)) as source:
        assert isinstance(source, Mapped)
        assert pathlib.Path(source.folder).is_dir()
        opened = source.open()
        np.testing.assert_array_equal(opened.X.toarray(), X.toarray())
        np.testing.assert_array_equal(opened.given.arrays["y"], given.arrays["y"])
        assert opened.given.facts == given.facts
        assert opened.table is None
        assert opened.trees == []


def test_within_reach__removes_its_folder_after_an_error(client, scratch):
    given = check_given("absolute", points()[:, 0], 40)
    with (
        pytest.raises(ZeroDivisionError),
        within_reach(Material(points(), given), Cluster(client)),
    ):
        _ = 1 / 0
