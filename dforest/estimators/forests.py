"""`DistanceForest`: a distance between rows, learned from distances between training rows."""

import numpy as np

from dforest.arrays import check_choice, check_count
from dforest.errors import DataError, SpecError
from dforest.estimators.base import ForestEstimator
from dforest.estimators.inputs import ids_of, read_features, read_given
from dforest.estimators.recipes import LEAF_ROWS, check_continues, recipe_of
from dforest.estimators.saving import model
from dforest.methods import answers, tiles
from dforest.methods.asked import Asked
from dforest.methods.fitting import fit, refit
from dforest.methods.nearest import check_k, nearest
from dforest.methods.scores import score
from dforest.run.client import place
from dforest.run.memory import room_of


@model
class DistanceForest(ForestEstimator):
    """Learn a distance between rows from distances between training rows (SMERF).

    Trees split the rows so that the mean distance within the parts falls most (equation 1). A
    tree's answer for two rows is the mean distance between the training rows of the two leaves
    they reach (equation 2), and the forest averages its trees (equation 3). A learned distance of
    a row to itself is not 0 in general.

    Parameters
    ----------
    distance : {"precomputed", "pairs", "graph", "indicator", "half_squared", "absolute"}
        What z is: a matrix, some known pairs, far - weight on edges, 0/1 of class labels,
        1/2 (y - y')^2, |y - y'|. `Pairs` and `Graph` need not be announced.
    n_estimators : int
        Trees.
    max_samples : int, float or None
        Rows drawn for a tree: a number, a share, or as many as there are.
    bootstrap : bool
        Draw with replacement; a row then counts as often as it was drawn.
    max_features : {"sqrt", "log2"}, int, float or None
        Features searched at a node, not counting those that are constant there; None for all.
    max_depth, max_leaf_nodes : int or None
        Limits of a tree; with ``max_leaf_nodes`` the splits that gain most are kept.
    min_samples_leaf, min_samples_split : int or float
        Fewest drawn rows of a leaf, of a node that is split: a number, or a share of the rows.
    min_impurity_decrease : float
        Least gain of a split, equation (1), as a share of the drawn rows.
    max_split_rows : int or None
        A node of more rows is searched on so many of them, drawn, so that trees cost
        O(n max_split_rows); where no feature tells more than chance on them, others are drawn.
        None is the paper's exhaustive search, O(n^2). Only for
        "precomputed": other notions are linear anyhow.
    max_bins : int or None
        At most so many quantile bins a feature; None for every distinct value (exact).
    projections : {"axis", "sparse"}
        Split on single features, or on sums of up to four with signs (oblique).
    leaf_rows : {"in_bag", "out_of_bag", "all"}
        Rows that vote in the leaves: those the tree was grown on, the others (honest), or all.
    weighting : {"tree", "kernel"}
        Average the trees' means, or divide the sum of z over all trees by the number of pairs.
    self_pairs : bool
        Whether a row's distance to itself counts within its leaf, as in equation (2).
    pool_size : int or None
        Rows that trees may draw from. None for all; where the distances are in a store that does
        not fit into memory, for as many as do.
    table_budget : int
        Bytes that all dense leaf tables may take; beyond it leaves are tabulated at ancestors.
    warm_start : bool
        Keep the trees of the last fit, if only ``n_estimators`` has grown, and add some. Give the
        same X and Z again: only their shapes are compared.
    n_jobs : int or None
        Threads of this process; None for all processors.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : (p,) str
        Only if X had names.
    feature_importances_ : (p,) float64
        Share of all gains made by each feature's splits; sums to 1.
    n_fallback_ : int
        Pairs of leaves without a known z, which answer with the mean of their parents' pair.
    n_leaves_ : (T,) int
    pool_report_ : dict or None
        How far answers move with the pool's size, where not all rows were drawn from.

    Notes
    -----
    Unknown z (NaN in a matrix, pairs not in `Pairs`) count as the mean of a node's known pairs of
    different rows when it is split. NaN in X goes to the side that gains more.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(8.0).reshape(8, 1)
    >>> forest = DistanceForest(n_estimators=50, min_samples_leaf=1, max_samples=1.0,
    ...                         bootstrap=False, random_state=0)
    >>> forest.fit(X, abs(X - X.T)).pairwise([[0.2], [6.9]])
    array([[0., 7.],
           [7., 0.]])
    """

    def __init__(
        self,
        distance="precomputed",
        n_estimators=100,
        *,
        max_samples=None,
        bootstrap=True,
        max_features="sqrt",
        max_depth=None,
        max_leaf_nodes=None,
        min_samples_leaf=5,
        min_samples_split=2,
        min_impurity_decrease=0.0,
        max_split_rows=2_000,
        max_bins=None,
        projections="axis",
        leaf_rows="in_bag",
        weighting="tree",
        self_pairs=True,
        pool_size=None,
        table_budget=1 << 30,
        warm_start=False,
        n_jobs=None,
        random_state=None,
    ):
        self.distance = distance
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_impurity_decrease = min_impurity_decrease
        self.max_split_rows = max_split_rows
        self.max_bins = max_bins
        self.projections = projections
        self.leaf_rows = leaf_rows
        self.weighting = weighting
        self.self_pairs = self_pairs
        self.pool_size = pool_size
        self.table_budget = table_budget
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    # Learning ----------------------------------------------------------------------------------

    def fit(self, X, Z, client=None):
        """Grow the trees and tabulate their leaves; return self.

        Parameters
        ----------
        X : (n, p) array-like, scipy sparse, `Dataset` or its path
            Features; NaN where unknown.
        Z : (n, n) array-like, `Pairs`, `Graph`, `MatrixStore`, a path, or responses (n,) or (n, q)
            Distances between the rows, or what they follow from, as ``distance`` says. Frames and
            stores with ids are matched to X by label.
        client : distributed.Client, optional
            Grow on its cluster; else on the active client's, else on threads of this process.

        Raises
        ------
        DataError
            X and Z do not fit together, or hold what they must not.
        SpecError
            A parameter is out of its range.
        """
        runner = place(client, self.n_jobs)
        X = read_features(X, model=type(self).__name__)
        n, p = X.values.shape
        given = read_given(self.distance, Z, X, runner, self.pool_size)
        old = getattr(self, "_forest", None) if self.warm_start else None
        room = room_of(runner) if given.is_stored else None
        recipe = recipe_of(self, given.notion, n, p, old, room)
        if old is not None:
            check_continues(old, recipe, n, p, self.random_state)
        self._forest = fit(recipe, X.values, given, runner, old)
        self._forget_names()
        self.n_features_in_ = p
        if X.names is not None:
            self.feature_names_in_ = np.asarray(X.names, object)
        return self

    def refit_leaves(self, X, Z, *, distance="precomputed", leaf_rows="all", client=None):
        """Give the same trees new leaf tables; return self.

        The rows may be others, and their distances of another kind: grow on what rows are like,
        tabulate links, and links are what is predicted.

        Parameters
        ----------
        X, Z
            As for `fit`.
        distance : str
            What ``Z`` is, as the parameter of that name.
        leaf_rows : {"all", "in_bag", "out_of_bag"}
            Other than "all" needs the rows of the fit, in their order.
        """
        forest, runner = self._fitted(), place(client, self.n_jobs)
        check_choice("leaf_rows", leaf_rows, LEAF_ROWS)
        X = self._features(X, finite=True)
        given = read_given(distance, Z, X, runner)
        self._forest = refit(forest, X.values, given, leaf_rows, runner)
        return self

    # Answers -----------------------------------------------------------------------------------

    def pairwise(self, XA, XB=None, out=None, return_std=False, *, client=None):
        """Learned distances of all rows of XA with all rows of XB.

        Parameters
        ----------
        XA, XB : (a, p), (b, p) array-like, scipy sparse, `Dataset` or its path
            XB=None means XA. Rows of datasets are read block by block.
        out : path, optional
            Stream tiles to a matrix store there instead, and return it as a `MatrixStore`: it may
            be larger than memory. When that was stopped, the same call takes it up.
        return_std : bool
            Also return the standard deviation over trees.
        client : distributed.Client, optional
            Work on its cluster; else on the active client's, else on threads of this process.

        Returns
        -------
        (a, b) float64, or a pair of them

        Raises
        ------
        SpecError
            They do not fit into half of the memory, or ``out`` is given with ``return_std``.
        """
        forest, runner = self._fitted(), place(client, self.n_jobs)
        if out is not None and return_std:
            raise SpecError("out= stores distances only; leave return_std=False")
        A = self._features(XA, stored=True)
        B = None if XB is None else self._features(XB, stored=True)
        if out is None:
            across = A if B is None else B
            answers.refuse_large(A.values.shape[0], across.values.shape[0], 1 + return_std)
        ones = answers.apply(forest, A.values, runner)
        others = None if B is None else answers.apply(forest, B.values, runner)
        asked = Asked(forest, ones, others)
        if out is not None:
            return tiles.stream_pairwise(asked, out, runner, ids=ids_of(XA, A))
        mean, std = answers.pairwise(asked, runner, with_std=return_std)
        return (mean, std) if return_std else mean

    def paired(self, XA, XB, *, client=None):
        """Learned distance row by row: (n, p), (n, p) -> (n,) float64; arguments as `pairwise`."""
        forest, runner = self._fitted(), place(client, self.n_jobs)
        ones, others = (self._features(X, stored=True).values for X in (XA, XB))
        if ones.shape[0] != others.shape[0]:
            raise DataError(
                f"XA has {ones.shape[0]} rows and XB {others.shape[0]}; paired needs as many"
            )
        ones, others = (answers.apply(forest, X, runner) for X in (ones, others))
        return answers.paired(Asked(forest, ones, others), runner)

    def kneighbors(self, X=None, n_neighbors=5, return_distance=True, *, client=None):
        """The training rows at the least learned distance.

        Parameters
        ----------
        X : (a, p) array-like, scipy sparse, `Dataset` or its path, optional
            None asks for the neighbours of the training rows, themselves left out.
        client : distributed.Client, optional
            As for `pairwise`.

        Returns
        -------
        distances (a, k) float64, indices (a, k) int64
            Ascending; equal distances in the order of rows, NaN last. Only indices with
            ``return_distance=False``.

        Notes
        -----
        All pairs are answered, but only a block of them is held at once.
        """
        forest, runner = self._fitted(), place(client, self.n_jobs)
        k = check_count("n_neighbors", n_neighbors)
        mine, ones = X is None, forest.leaves
        check_k(k, forest.n_rows, skip_self=mine)
        if not mine:
            ones = answers.apply(forest, self._features(X, stored=True).values, runner)
        found = nearest(Asked(forest, ones, forest.leaves), k, runner, skip_self=mine)
        return found if return_distance else found[1]

    def kneighbors_graph(self, X=None, n_neighbors=5, mode="distance", *, client=None):
        """The k nearest training rows as a sparse matrix (a, n), for UMAP, HDBSCAN and the like.

        ``mode`` is "distance" (learned distances) or "connectivity" (ones); the rest is as for
        `kneighbors`.
        """
        check_choice("mode", mode, ("distance", "connectivity"))
        apart, index = self.kneighbors(X, n_neighbors, client=client)
        values = apart if mode == "distance" else np.ones(apart.shape)
        return answers.rows_of_few(index, values, self._forest.n_rows)

    def oob_pairwise(self, rows=None, out=None, trees="both", *, client=None):
        """Learned distances between training rows, from trees that were not grown on them.

        Parameters
        ----------
        rows : (k,) int or bool, optional
            Training rows; None for all.
        out : path, optional
            Stream tiles to a matrix store there, and return it.
        trees : {"both", "either"}
            Trees for which both rows of a pair are out of bag, or at least one is.
        client : distributed.Client, optional
            As for `pairwise`.

        Returns
        -------
        (k, k) float64
            NaN where no tree may answer.
        """
        forest, runner = self._fitted(), place(client, self.n_jobs)
        check_choice("trees", trees, ("both", "either"))
        rows = np.arange(forest.n_rows) if rows is None else np.arange(forest.n_rows)[rows]
        if out is None:
            answers.refuse_large(len(rows), len(rows))
        outside = answers.out_of_bag(forest, rows)
        asked = Asked(forest, forest.leaves[rows], None, outside, trees)
        if out is not None:
            return tiles.stream_pairwise(asked, out, runner)
        return answers.pairwise(asked, runner).mean

    def score(self, X, Z, *, client=None):
        """R^2 over known pairs of different rows: 1 - squared errors / those of the mean.

        ``Z`` is what the leaves were tabulated on: another kind than ``distance`` after a refit.
        Only a block of pairs is held at once. ``client`` as for `pairwise`.
        """
        forest, runner = self._fitted(), place(client, self.n_jobs)
        X = self._features(X, stored=True)
        given = read_given(forest.judged_as, Z, X, runner)
        leaves = answers.apply(forest, X.values, runner)
        return score(Asked(forest, leaves), given, runner)

    # What has been learned ---------------------------------------------------------------------

    @property
    def n_fallback_(self):
        """Pairs of leaves without a known z, over all trees."""
        return int(self._fitted().fallbacks.sum())

    @property
    def pool_report_(self):
        """How far answers move between half the pool and all of it; None where all rows were drawn.

        A dict: rows of the ``pool`` and of the ``half``, ``trees`` compared, how far answers
        ``moved`` (root mean square), how far they move ``by_chance`` of drawing trees, and their
        ``spread`` over pairs (standard deviation).
        """
        return self._fitted().pool_report
