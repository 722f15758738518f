"""`pairwise_distances`: a matrix of distances between rows, in memory or in a store."""

from dforest.arrays import Features, check_choice, check_count
from dforest.distances.pairwise import measure_of
from dforest.errors import DataError, SpecError
from dforest.estimators.forests import DistanceForest
from dforest.estimators.inputs import ids_of, read_features
from dforest.methods import answers, pairwise, tiles
from dforest.run.client import place
from dforest.run.here import Here


def pairwise_distances(
    A,
    B=None,
    distance="euclidean",
    *,
    out=None,
    symmetric=None,
    tile=None,
    n_jobs=None,
    client=None,
    **options,
):
    """Distances of all rows of A with all rows of B, or with each other.

    Parameters
    ----------
    A, B : (a, p), (b, p) array-like, scipy sparse, `Dataset` or its path
        B=None means A. float32 and float64; sums are float64 in any case.
    distance : str, callable, or a fitted `DistanceForest`
        A name: euclidean, sqeuclidean, minkowski (``w``, ``p``), manhattan, chebyshev, cosine,
        correlation, hamming (share of features that differ). A callable ``d(x, y)`` of two rows
        (p,), which returns a number, or NaN where the distance is unknown. A forest: the distance
        that it has learned.
    out : path, optional
        Write the matrix there as float32, tile by tile, and return it as a `MatrixStore`: it may
        be larger than memory. The ids of a dataset become its ids. When such a run was killed, the
        same call takes it up; a callable must then be a plain function with the same code.
    symmetric : {"upper", "full"}, optional
        For ``out``: store the tiles with row block <= column block only, or all. Names and forests
        are symmetric, and take "upper" unless given. A callable is called for every pair of
        (x, y) and (y, x), unless ``symmetric`` is given, which declares it symmetric.
    tile : int, optional
        Rows of a tile, the work that is done at once: 1,024 in a store, 512 in memory, 256 for a
        callable.
    n_jobs : int, optional
        Threads of this process; None for all processors.
    client : distributed.Client, optional
        With ``out``, work on its cluster; else on the active client's, else in this process. What
        stays in memory is always computed in this process.
    **options
        Of a named distance. minkowski: exponent ``p`` (at least 1; 2 unless given) and weights
        ``w`` (p,) of the features, at least 0: (sum of w |x - y|^p)^(1/p).

    Returns
    -------
    (a, b) float64, or `MatrixStore`
        The bits depend on the two rows alone: not on tiles, threads or workers. For names d(x, x)
        is 0 and d(x, y) = d(y, x), exactly.

    Raises
    ------
    DataError
        A row that has no such distance: NaN, infinite or beyond 1e150; all zeros for cosine;
        constant for correlation. A callable that fails, or returns no number: names the pair.
    SpecError
        An unknown distance or option; a matrix that takes more than half of the memory, without
        ``out``; a callable that cannot be sent to workers.

    Examples
    --------
    >>> pairwise_distances([[0, 0], [3, 4]], [[0, 0], [6, 8], [3, 0]])
    array([[ 0., 10.,  3.],
           [ 5.,  5.,  4.]])
    >>> pairwise_distances([[0, 0], [3, 4]], distance="minkowski", p=1, w=[1, 10])
    array([[ 0., 43.],
           [43.,  0.]])
    >>> pairwise_distances([[1], [2]], distance=lambda x, y: max(x[0] - y[0], 0))
    array([[0., 0.],
           [1., 0.]])
    """
    check_choice("symmetric", symmetric, (None, "upper", "full"))
    tile = None if tile is None else check_count("tile", tile)
    runner = place(client, n_jobs)
    if isinstance(distance, DistanceForest):
        return _learned(distance, A, B, out, symmetric, tile, runner, options)
    ones, others = _read(A, B)
    sides = pairwise.Sides(ones.values, None if others is None else others.values)
    n_features = ones.values.shape[1]
    measure = measure_of(distance, options, n_features=n_features, symmetric=symmetric)
    layout = pairwise.layout_of(sides, measure, symmetric)
    tile = tile or pairwise.tile_of(measure, is_stored=out is not None)
    if out is None:
        pairwise.refuse_large(*sides.shape)
    pairwise.check(sides, measure)
    if out is None:
        here = runner if isinstance(runner, Here) else Here(n_jobs)
        return pairwise.in_memory(sides, measure, layout, here, tile)
    ids = ids_of(A, ones)
    return pairwise.to_store(sides, measure, layout, out, runner, ids=ids, tile=tile)


def _read(A, B) -> tuple[Features, Features | None]:
    """Both sides, with the same features."""
    ones = read_features(A, what="A")
    if B is None:
        return ones, None
    others = read_features(B, what="B")
    widths = ones.values.shape[1], others.values.shape[1]
    if widths[0] != widths[1]:
        raise DataError(f"A has {widths[0]} features, B has {widths[1]}; give both the same")
    if ones.names and others.names and ones.names != others.names:
        odd = next(f for f, both in enumerate(zip(ones.names, others.names)) if both[0] != both[1])
        raise DataError(
            f"feature {odd} is {ones.names[odd]!r} in A, but {others.names[odd]!r} in B; "
            "give both the same features in the same order"
        )
    return ones, others


def _learned(estimator: DistanceForest, A, B, out, symmetric, tile, runner, options):
    """Distances that a forest has learned."""
    if options:
        raise SpecError(f"options {', '.join(options)} are for named distances; leave them out")
    pairwise.check_symmetric(symmetric, B)
    if out is None:
        return estimator.pairwise(A, B)
    forest, read = estimator._fitted(), estimator._features(A, stored=True)
    ones, others = answers.apply(forest, read.values, runner), None
    if B is not None:
        others = answers.apply(forest, estimator._features(B, stored=True).values, runner)
    asked, ids = tiles.Asked(forest, ones, others), ids_of(A, read)
    tile = tile or tiles.TILE
    return tiles.stream_pairwise(asked, out, runner, symmetric=symmetric, ids=ids, tile=tile)
