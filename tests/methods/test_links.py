"""Spectra, held-out links and non-links against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dforest.errors import DataError, SpecError
from dforest.methods.links import (
    cosine_pairs,
    graph_spectrum,
    links_to_judge,
    normalised,
    row_folds,
    walks,
)


def random_graph(seed, n=30, share=0.15):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < share, 1) * rng.integers(1, 4, (n, n))
    return sparse.csr_array((upper + upper.T).astype(float))


@pytest.mark.parametrize("seed", range(5))
def test_graph_spectrum__gives_the_singular_values_and_the_best_low_rank_square(seed):
    graph = random_graph(seed)
    ballast = graph.sum() / graph.shape[0]
    left, values, _ = np.linalg.svd(normalised(graph, ballast).toarray())
    u = graph_spectrum(graph, 7)
    np.testing.assert_allclose(np.linalg.norm(u, axis=0), values[:7], atol=1e-10)
    gap = values[6] - values[7]
    if gap > 1e-3:  # the subspace is only settled where the next value is apart
        best = (left[:, :7] * values[:7] ** 2) @ left[:, :7].T
        np.testing.assert_allclose(u @ u.T, best, atol=1e-8)


def test_graph_spectrum__of_an_isolated_node_is_zero():
    graph = sparse.block_diag([np.ones((4, 4)) - np.eye(4), np.zeros((1, 1))]).tocsr()
    np.testing.assert_allclose(graph_spectrum(graph, 2)[4], 0, atol=1e-12)


@pytest.mark.parametrize("n_components", [0, 30, 31])
def test_graph_spectrum__refuses_more_columns_than_there_are(n_components):
    with pytest.raises(SpecError, match=f"{n_components} components of a graph of 30 nodes"):
        graph_spectrum(random_graph(0), n_components)


def test_graph_spectrum__of_many_separate_pairs_ends_and_shows_the_large_part():
    ring = np.roll(np.eye(40), 1, axis=1)
    pairs = [np.array([[0.0, 1.0], [1.0, 0.0]])] * 300
    chords = random_graph(0, n=40).toarray() > 0
    graph = sparse.block_diag([ring + ring.T + chords, *pairs]).tocsr()
    u = graph_spectrum(graph, 5)
    np.testing.assert_allclose(u[40:], 0, atol=1e-6)  # a pair's value is 1 / (1 + mean degree)


def test_graph_spectrum__refuses_a_graph_without_links():
    with pytest.raises(DataError, match="its 5 nodes have no link"):
        graph_spectrum(sparse.csr_array((5, 5)), 2)


def test_normalised__refuses_negative_weights():
    with pytest.raises(DataError, match="weighs -1"):
        normalised(sparse.csr_array([[0.0, -1.0], [-1.0, 0.0]]))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_walks__are_powers_off_the_diagonal(steps):
    graph = random_graph(1).toarray()
    scale = 1 / np.sqrt(np.maximum(graph.sum(0), 1))
    once = graph * scale[:, None] * scale
    powers = sum((np.linalg.matrix_power(once, k) for k in range(2, steps + 1)), 0 * once)
    expected = graph + 3 * powers * ~np.eye(len(graph), dtype=bool)
    found = walks(sparse.csr_array(graph), steps, 3)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    assert abs(found - found.T).max() == 0


@given(n=st.integers(2, 40), data=st.data())
def test_row_folds__share_out_every_row_once(n, data):
    folds = row_folds(n, data.draw(st.integers(2, n)), seed=data.draw(st.integers(0, 9)))
    assert sorted(np.concatenate(folds)) == list(range(n))
    assert np.ptp([len(fold) for fold in folds]) <= 1


@settings(deadline=None)
@given(seed=st.integers(0, 99), m=st.integers(1, 20), ratio=st.sampled_from([0.5, 1.0, 3.0]))
def test_links_to_judge__are_all_links_and_distinct_non_links_of_the_held_out(seed, m, ratio):
    graph = random_graph(seed)
    held = np.random.default_rng(seed).choice(30, m, replace=False)
    is_held = np.isin(np.arange(30), held)
    all_pairs = [(a, b) for a in range(30) for b in range(a + 1, 30) if is_held[a] or is_held[b]]
    links = {pair for pair in all_pairs if graph[pair]}
    if not links:
        return
    wanted = round(ratio * len(links))
    if wanted > len(all_pairs) - len(links):
        with pytest.raises(DataError, match="give non_links of at most"):
            links_to_judge(graph, held, ratio, seed=seed)
        return
    i, j, is_link = links_to_judge(graph, held, ratio, seed=seed)
    pairs = list(zip(i.tolist(), j.tolist()))
    assert {p for p, yes in zip(pairs, is_link) if yes} == links
    others = [p for p, yes in zip(pairs, is_link) if not yes]
    assert len(others) == len(set(others)) == wanted
    assert set(others) <= set(all_pairs) - links


def test_links_to_judge__draws_every_non_link_equally_often():
    graph = sparse.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(5, 5))
    counts = np.zeros((5, 5), int)
    for seed in range(2000):
        i, j, is_link = links_to_judge(graph, [0, 1, 2], 1, seed=seed)
        counts[i[~is_link], j[~is_link]] += 1
    drawn = counts[np.triu_indices(5, 1)]
    expected = np.full(8, 2000 / 8)  # nine pairs have an end among 0, 1, 2; one is the link
    assert np.count_nonzero(drawn) == 8
    chi_squared = ((drawn[drawn > 0] - expected) ** 2 / expected).sum()
    assert chi_squared < 24.3  # the 99.9 % point with 7 degrees of freedom


def test_links_to_judge__refuses_rows_without_links():
    with pytest.raises(DataError, match="none of the 1 rows held out has a link"):
        links_to_judge(sparse.csr_array((3, 3)), [0])


def test_cosine_pairs__are_cosines_dense_or_sparse():
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[3] = 0
    i, j = [0, 1, 3], [2, 5, 4]
    length = np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    expected = (X[i] * X[j]).sum(1) / length[i] / length[j]
    np.testing.assert_allclose(cosine_pairs(X, i, j), expected)
    np.testing.assert_allclose(cosine_pairs(sparse.csr_matrix(X), i, j), expected)
