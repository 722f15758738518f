"""Pairs and graphs: one canonical form, however the same distances were given."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dforest.arrays import Graph, Pairs, as_distances
from dforest.errors import DataError, SpecError


@st.composite
def known(draw):
    """A symmetric 6 x 6 matrix with some pairs unknown, and its pairs in a random order."""
    pairs = [(i, j) for i in range(6) for j in range(i, 6)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    numbers = st.floats(-9, 9).map(lambda z: z if abs(z) > 1e-20 else 0.0)  # what float32 can hold
    z = draw(st.lists(numbers, min_size=len(chosen), max_size=len(chosen)))
    matrix = np.full((6, 6), np.nan)
    ends = [pair[::-1] if draw(st.booleans()) else pair for pair in chosen]
    for (i, j), value in zip(ends, z, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix, np.array(ends), np.array(z)


@given(known())
def test_pairs__are_a_matrix_with_nan_elsewhere(case):
    matrix, ends, z = case
    pairs = Pairs(ends[:, 0], ends[:, 1], z)
    np.testing.assert_array_equal(pairs.dense(6), matrix)
    assert as_distances(pairs.dense(6), 6).largest == pytest.approx(np.abs(z).max(), rel=1e-6)


@given(known())
def test_pairs__are_sorted_and_come_back_as_they_are(case):
    _, ends, z = case
    pairs = Pairs(*ends.T, z, n_rows=6)
    assert (pairs.i <= pairs.j).all()
    assert (np.diff(pairs.i * 6 + pairs.j) > 0).all()
    for twin in (
        Pairs(pairs.i, pairs.j, pairs.z, 6),
        Pairs(pairs.j[::-1], pairs.i[::-1], pairs.z[::-1], 6),
        Pairs(np.r_[pairs.i, pairs.j], np.r_[pairs.j, pairs.i], np.r_[pairs.z, pairs.z], 6),
        pickle.loads(pickle.dumps(pairs)),
    ):
        for name in "ijz":
            np.testing.assert_array_equal(getattr(twin, name), getattr(pairs, name))
        assert twin.n_rows == 6
    assert pairs.i.dtype == pairs.j.dtype == np.int64
    assert pairs.z.dtype == np.float64


@given(known(), st.lists(st.integers(0, 5), unique=True, min_size=1))
def test_pairs__take_is_selecting_rows_and_columns(case, rows):
    matrix, ends, z = case
    wanted = matrix[np.ix_(rows, rows)]
    pairs = Pairs(*ends.T, z)
    if np.isnan(wanted).all():
        with pytest.raises(DataError, match="0 pairs"):
            pairs.take(rows)
    else:
        np.testing.assert_array_equal(pairs.take(rows).dense(len(rows)), wanted)


def test_pairs__given_twice_must_agree():
    assert len(Pairs([0, 1], [1, 0], [2.0, 2.0])) == 1
    assert Pairs([0, 1], [1, 0], [2.0, 2.0 + 1e-9]).z.tolist() == [2.0]
    with pytest.raises(DataError, match="rows 1 and 4 twice, with z 2 and 3; give each pair one z"):
        Pairs([4, 0, 1], [1, 1, 4], [2.0, 9.0, 3.0])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([], [], []), "0 pairs"),
        (([0], [1, 2], [1.0]), "1, 2 and 1 elements"),
        (([0.0], [1], [1.0]), r"i holds float64 .* i.astype\(int\)"),
        (([True], [1], [1.0]), "i holds bool"),
        (([0], [-1], [1.0]), "j names row -1"),
        (([0], [1], [np.nan]), r"z\[0\] is nan; .* leave unknown pairs out"),
        (([0], [1], [np.inf]), r"z\[0\] is inf"),
        (([0], [1], ["a"]), "z holds text"),
        (([0], [1], [[1.0]]), "z must have 1 dimension"),
        (([0], [7], [1.0], 7), r"X has 7 rows \(0 to 6\), but a pair names row 7"),
    ],
)
def test_pairs__say_what_is_wrong(args, message):
    with pytest.raises(DataError, match=message):
        Pairs(*args)


def test_pairs__fit_the_rows_of_x():
    pairs = Pairs(pd.Series([0, 1]), np.array([3, 2], np.uint8), [1, 2])
    assert pairs.n_rows is None
    assert pairs.for_rows(9).n_rows == 9
    with pytest.raises(DataError, match="X has 9 rows, but these pairs were made for n_rows=5"):
        Pairs([0], [1], [1.0], n_rows=5).for_rows(9)
    with pytest.raises(SpecError, match="n_rows=0"):
        Pairs([0], [1], [1.0], n_rows=0)


@st.composite
def weighted(draw):
    """A symmetric 6 x 6 matrix of weights without a diagonal, and its edges."""
    pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    w = np.array(draw(st.lists(st.floats(-2, 2), min_size=len(chosen), max_size=len(chosen))))
    dense = np.zeros((6, 6))
    for (i, j), value in zip(chosen, w, strict=True):
        dense[i, j] = dense[j, i] = value
    return dense, np.array(chosen, int).reshape(-1, 2), w


@given(weighted(), st.sampled_from(["csr_array", "coo_matrix", "lil_array", "csc_matrix"]))
def test_graph__of_edges_is_the_graph_of_the_matrix(case, form):
    dense, edges, w = case
    by_edges = Graph(w, 2.5, edges=edges[:, ::-1], n_rows=6)
    by_matrix = Graph(getattr(sparse, form)(dense), far=2.5)
    expected = np.where(np.eye(6) > 0, 0.0, 2.5 - dense)
    for graph in (by_edges, by_matrix, pickle.loads(pickle.dumps(by_edges)), Graph(dense, 2.5)):
        assert graph.weights.dtype == np.float64
        assert graph.weights.has_canonical_format
        assert graph.weights.indices.dtype == graph.weights.indptr.dtype == np.int32
        assert graph.n_rows == 6
        np.testing.assert_array_equal(graph.dense(), expected)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(
                getattr(graph.weights, part), getattr(by_edges.weights, part)
            )


@given(weighted(), st.permutations(range(6)), st.integers(1, 6))
def test_graph__take_is_selecting_rows_and_columns(case, order, k):
    dense, edges, w = case
    rows = order[:k]
    graph = Graph(w, edges=edges, n_rows=6)
    np.testing.assert_array_equal(graph.take(rows).dense(), graph.dense()[np.ix_(rows, rows)])


def test_graph__has_isolated_rows_and_weights_of_one():
    graph = Graph(edges=[[0, 1], [1, 0]], n_rows=4)
    assert graph.weights.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0] * 4, [0] * 4]
    assert graph.for_rows(4) is graph
    assert Graph(edges=np.empty((0, 2)), n_rows=3).dense().sum() == 6.0
    with pytest.raises(DataError, match=r"X has 5 rows, the graph has 4; .*n_rows=5"):
        graph.for_rows(5)


def test_graph__leaves_the_given_matrix_alone():
    given = sparse.csr_matrix(np.array([[0, 1], [1, 0]], np.int8))
    graph = Graph(given)
    graph.weights.data[:] = 7
    assert given.toarray().tolist() == [[0, 1], [1, 0]]


def test_graph__drops_self_loops_with_a_warning():
    dense = np.array([[5.0, 1.0], [1.0, 0.0]])
    with pytest.warns(UserWarning, match=r"1 self-loop\(s\) dropped"):
        graph = Graph(sparse.csr_array(dense))
    assert graph.weights.nnz == 2
    with pytest.warns(UserWarning, match=r"1 self-loop\(s\) dropped"):
        graph = Graph([5.0, 1.0], edges=[[0, 0], [0, 1]])
    assert graph.weights.toarray().tolist() == [[0, 1], [1, 0]]


def test_graph__rounding_is_no_direction():
    dense = np.array([[0, 0.1], [0.1 + 1e-9, 0]])
    weights = Graph(sparse.csr_array(dense)).weights
    assert weights[0, 1] == weights[1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Graph(sparse.csr_array([[0, 1.0], [0, 0]])),
            r"directed: w\[0, 1\] is 1 but w\[1, 0\] is 0; .* w.maximum\(w.T\) or w \+ w.T",
        ),
        (lambda: Graph(sparse.csr_array(np.ones((2, 3)))), r"shape \(2, 3\)"),
        (lambda: Graph(sparse.csr_array([[0, np.nan], [np.nan, 0]])), r"w\[0, 1\] is nan"),
        (lambda: Graph([np.inf], edges=[[0, 1]]), r"weights\[0\], of rows 0 and 1, is inf"),
        (lambda: Graph(), "neither weights nor edges"),
        (lambda: Graph(edges=[0, 1]), r"edges must be \(m, 2\), got shape \(2,\)"),
        (lambda: Graph(edges=[[0.5, 1.0]]), "edges holds float64"),
        (lambda: Graph(edges=[[0, -1]]), "edges names row -1"),
        (lambda: Graph([1.0, 2.0], edges=[[0, 1]]), "weights has 2 elements, edges 1"),
        (lambda: Graph([1.0, 2.0], edges=[[0, 1], [1, 0]]), "twice, with weight 1 and 2"),
        (lambda: Graph(edges=[[0, 5]], n_rows=3), "edges need 6 rows, n_rows is 3"),
        (lambda: Graph(pd.DataFrame(np.eye(2))), "weights is a frame"),
        (lambda: Graph(edges=[[0, 1]], far="1"), "far='1' is no finite number"),
        (lambda: Graph(edges=[[0, 1]], far=np.nan), "far=nan is no finite number"),
    ],
)
def test_graph__says_what_is_wrong(make, message):
    with pytest.raises((DataError, SpecError), match=message):
        make()
