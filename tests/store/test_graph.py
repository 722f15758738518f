"""Graphs come back as they were; what is no undirected graph is refused with the remedy."""

import numpy as np
import pytest
from scipy import sparse

from dforest.errors import DataError, StoreError
from dforest.store.graph import read_graph, write_graph


def random_graph(n=30, seed=0):
    half = sparse.random_array((n, n), density=0.1, rng=seed)
    return sparse.csr_array(sparse.triu(half, 1) + sparse.triu(half, 1).T)


def test_graph__comes_back(tmp_path):
    weights = random_graph()
    write_graph(tmp_path / "g", weights, far=2.5, ids=np.arange(30), seed=0)
    graph = read_graph(tmp_path / "g")
    assert (graph.weights != weights).nnz == 0
    assert graph.weights.has_sorted_indices
    assert graph.weights.dtype == np.float64
    assert graph.far == 2.5
    assert graph.ids.tolist() == [str(i) for i in range(30)]


def test_graph__may_have_no_edges(tmp_path):
    write_graph(tmp_path / "g", sparse.csr_array((4, 4)))
    assert read_graph(tmp_path / "g").weights.shape == (4, 4)
    assert read_graph(tmp_path / "g").ids is None


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (sparse.csr_array(np.array([[0, 1.0], [3, 0]])), r"w\[0, 1\] = 1 .*w.maximum\(w.T\)"),
        (sparse.csr_array(np.array([[2, 1.0], [1, 0]])), "row 0 has an edge to itself"),
        (sparse.csr_array(np.array([[0, np.inf], [np.inf, 0]])), "must be finite"),
        (sparse.csr_array((2, 3)), "square"),
        (np.eye(2), "square sparse"),
    ],
)
def test_write_graph__names_the_remedy(tmp_path, weights, error):
    with pytest.raises(DataError, match=error):
        write_graph(tmp_path / "g", weights)


def test_read_graph__names_the_damaged_block(tmp_path):
    write_graph(tmp_path / "g", random_graph())
    file = tmp_path / "g/v1/indices/c/0"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(StoreError, match=r"'indices', block \(0,\) is damaged"):
        read_graph(tmp_path / "g")
