"""Predicting links: what a graph says as columns, and how a guess at unseen links is judged.

Trees are grown to explain the graph's spectrum by the rows' features; their leaves are then
tabulated on the links. Rows held out bring features only, never a link.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from dforest.errors import DataError, SpecError
from dforest.seeds import stream


def normalised(weights, ballast: float = 0.0) -> sparse.csr_array:
    """Scale each link by the degrees of its two ends: D^-1/2 W D^-1/2.

    Parameters
    ----------
    weights : (n, n) symmetric scipy sparse
        Weights of at least 0. The row of an isolated node stays empty.
    ballast : float
        Added to every degree.

    Examples
    --------
    >>> star = sparse.csr_array([[0, 1, 1, 1, 1], *[[1, 0, 0, 0, 0]] * 4])
    >>> normalised(star).toarray()[0]
    array([0. , 0.5, 0.5, 0.5, 0.5])
    """
    weights = sparse.csr_array(weights, dtype=np.float64)
    if weights.nnz and weights.data.min() < 0:
        raise DataError(
            f"graph: a link weighs {weights.data.min():g}, but degrees need weights of at least 0"
        )
    degree = weights.sum(axis=1) + ballast
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(len(degree)), where=degree > 0)
    return sparse.csr_array(sparse.diags_array(scale) @ weights @ sparse.diags_array(scale))


def graph_spectrum(weights, n_components: int, *, seed: int = 0) -> np.ndarray:
    """Return the leading singular vectors of the normalised graph, each times its singular value.

    The distance 1/2 |y - y'|^2 of two rows y of it says how differently two nodes are linked: a
    response for trees (``distance="half_squared"``) of a few columns in place of n.

    Parameters
    ----------
    weights : (n, n) symmetric scipy sparse
    n_components : int
        Columns to keep, less than n.
    seed : int
        Of the first vector of the iteration; it settles the signs and nothing else of weight.

    Returns
    -------
    (n, n_components) float64
        The largest singular value first.

    Raises
    ------
    SpecError
        ``n_components`` is not between 1 and n - 1.
    DataError
        A negative weight, or no link at all.

    Notes
    -----
    The mean degree is added to each degree (Qin & Rohe 2013). Without it every small part that is
    cut off from the rest has the singular value 1: such parts would fill the spectrum, in no
    order, and the iteration would not end.

    Examples
    --------
    Two triangles without a link between them:

    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> graph = sparse.block_diag([triangle, triangle])
    >>> u = graph_spectrum(graph, 2)
    >>> abs(u @ u.T).round(2)[0]
    array([0.08, 0.08, 0.08, 0.  , 0.  , 0.  ])
    """
    n = weights.shape[0]
    if not 1 <= n_components < n:
        raise SpecError(
            f"graph_spectrum: {n_components} components of a graph of {n} nodes; "
            f"give between 1 and {n - 1}"
        )
    if not weights.sum() > 0:
        raise DataError(f"graph: its {n} nodes have no link; there is nothing to learn from")
    start = stream(seed, "spectrum").normal(size=n)
    # of a symmetric matrix, singular values are the absolute values of eigenvalues
    matrix = normalised(weights, ballast=weights.sum() / n)
    values, vectors = eigsh(matrix, k=n_components, which="LM", v0=start)
    order = np.argsort(-abs(values), kind="stable")
    return vectors[:, order] * abs(values[order])


def walks(weights, steps: int, share: float) -> sparse.csr_array:
    """Add walks to links: W + share * (N^2 + ... + N^steps) off the diagonal, N normalised.

    Links are few, and a pair of leaves without any says little; but two nodes linked to the same
    third are likely to be linked. N^k holds the walks of k links between two nodes, each counted
    for less the more links it passes by.

    Parameters
    ----------
    weights : (n, n) symmetric scipy sparse
    steps : int
        Longest walk; 1 gives the links alone. Entries grow by about the mean degree a step.
    share : float
        Weight of a walk beside a link.

    Examples
    --------
    >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> walks(path, steps=2, share=0.5).toarray()
    array([[0.  , 1.  , 0.25],
           [1.  , 0.  , 1.  ],
           [0.25, 1.  , 0.  ]])
    """
    total = sparse.csr_array(weights, dtype=np.float64)
    once = power = normalised(weights)
    for _ in range(steps - 1):
        power = sparse.csr_array(power @ once)
        power = (power + power.T) / 2  # sums of products are symmetric but for the last bits
        total = total + share * power
    total = sparse.coo_array(total)
    off = total.coords[0] != total.coords[1]
    i, j = (axis[off] for axis in total.coords)
    return sparse.csr_array(sparse.coo_array((total.data[off], (i, j)), shape=total.shape))


def row_folds(n_rows: int, n_folds: int, *, seed: int = 0) -> list[np.ndarray]:
    """Deal the rows out to folds at random; sizes differ by one at most.

    >>> [fold.tolist() for fold in row_folds(5, 2)]
    [[0, 1, 2], [3, 4]]
    """
    if not 2 <= n_folds <= n_rows:
        raise SpecError(f"folds: {n_folds} of {n_rows} rows; give between 2 and {n_rows}")
    order = stream(seed, "folds").permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def links_to_judge(weights, held_out, non_links: float = 5.0, *, seed: int = 0):
    """Return every link of the rows held out, and random pairs of them that are no links.

    Parameters
    ----------
    weights : (n, n) symmetric scipy sparse
        The whole graph, the links of held-out rows included.
    held_out : (m,) int
        Row numbers. At least one end of every pair is among them; the other is any row.
    non_links : float
        Non-links for each link, drawn evenly from all such pairs, none twice.

    Returns
    -------
    i, j : (k,) int64
        The pairs, links first, i < j.
    is_link : (k,) bool

    Raises
    ------
    DataError
        Rows held out have no link, or fewer non-links than asked for.

    Examples
    --------
    >>> ring = sparse.csr_array(np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1))
    >>> i, j, is_link = links_to_judge(ring, [0], non_links=1)
    >>> i[is_link], j[is_link]
    (array([0, 0]), array([1, 5]))
    >>> bool(ring[i[~is_link], j[~is_link]].any())
    False
    """
    n = weights.shape[0]
    held_out = np.unique(np.asarray(held_out, np.int64))
    is_held = np.zeros(n, bool)
    is_held[held_out] = True
    upper = sparse.coo_array(sparse.triu(weights, k=1))
    told = is_held[upper.row] | is_held[upper.col]
    links = np.sort(upper.row[told].astype(np.int64) * n + upper.col[told])
    wanted = round(non_links * len(links))
    m = len(held_out)
    there_are = m * (n - m) + m * (m - 1) // 2 - len(links)
    if not len(links):
        raise DataError(f"none of the {m} rows held out has a link; nothing can be judged")
    if wanted > there_are:
        raise DataError(
            f"{non_links:g} non-links for each of {len(links)} links are {wanted}, but the rows "
            f"held out have {there_are}; give non_links of at most {there_are / len(links):.3g}"
        )
    others = _draw_non_links(links, held_out, is_held, wanted, stream(seed, "non-links"))
    pairs = np.concatenate([links, others])
    return pairs // n, pairs % n, np.arange(len(pairs)) < len(links)


def _draw_non_links(links, held_out, is_held, wanted, random) -> np.ndarray:
    """Draw pairs, as i * n + j, until ``wanted`` different ones are no links."""
    n, found = len(is_held), np.zeros(0, np.int64)
    while len(found) < wanted:
        i = random.choice(held_out, 2 * wanted)
        j = random.integers(n, size=len(i))
        fair = (i != j) & (~is_held[j] | (i < j))  # a pair of two held-out rows is drawn twice
        keys = np.minimum(i, j)[fair] * n + np.maximum(i, j)[fair]
        keys = np.concatenate([found, keys[~np.isin(keys, links)]])
        _, first = np.unique(keys, return_index=True)
        found = keys[np.sort(first)]  # in the order drawn: cutting the tail is fair
    return found[:wanted]


def cosine_pairs(X, i, j) -> np.ndarray:
    """Cosine of the features of the rows i[k] and j[k]; 0 where a row is all zeros: (k,) float64.

    >>> cosine_pairs(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), [0, 0], [1, 2]).round(3)
    array([0.707, 0.   ])
    """
    X = sparse.csr_array(X, dtype=np.float64)
    length = np.sqrt(X.multiply(X).sum(axis=1))
    dots = X[i].multiply(X[j]).sum(axis=1)
    both = length[i] * length[j]
    return np.divide(dots, both, out=np.zeros(len(dots)), where=both > 0)
