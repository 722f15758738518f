"""Forests that tell numbers: random forests and kernel forests (KeRF)."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from dforest.arrays import check_choice
from dforest.estimators.inputs import read_features
from dforest.estimators.saving import model
from dforest.estimators.voting import VotingForest, preset, shape_of_response


@model
class ForestRegressor(RegressorMixin, VotingForest):
    """Tell numbers by a random forest.

    Trees split the rows so that the mean distance within the parts falls most. A leaf predicts the
    number that is nearest to its rows: their mean for "half_squared" (the variance criterion),
    their median for "absolute", which outliers move little.

    Parameters
    ----------
    n_estimators : int
        Trees.
    distance : {"half_squared", "absolute"}
        What z is: 1/2 (y - y')^2, summed over the responses, or |y - y'| of one response.
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
        Least gain of a split, equation (1) of SMERF, as a share of the drawn rows.
    max_bins : int or None
        At most so many quantile bins a feature; None for every distinct value (exact).
    projections : {"axis", "sparse"}
        Split on single features, or on sums of up to four with signs (oblique).
    leaf_rows : {"in_bag", "out_of_bag", "all"}
        Rows that vote in the leaves: those the tree was grown on, the others (honest), or all. A
        leaf in which nobody votes says what its nearest ancestor with votes says.
    weighting : {"tree", "kernel"}
        Average the trees' predictions, or weigh each by the rows that vote in its leaf (KeRF).
    warm_start : bool
        Keep the trees of the last fit, if only ``n_estimators`` has grown, and add some. Give the
        same X and y again: only their shapes are compared.
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
    oob_count_ : (n,) int64
        Trees for which each training row was out of bag.
    oob_score_ : float
        R^2 of `oob_predict`.
    n_leaves_ : (T,) int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = X[:, 0] + X[:, 1]
    >>> forest = ForestRegressor(random_state=0).fit(X, y)
    >>> forest.predict([[0.5, 0.1], [0.8, 0.7]]).round(1)
    array([0.6, 1.5])
    >>> bool(forest.oob_score_ > 0.95)
    True
    """

    _is_flat: bool  # whether y was (n,)

    def __init__(
        self,
        n_estimators=100,
        *,
        distance="half_squared",
        max_samples=None,
        bootstrap=True,
        max_features=None,
        max_depth=None,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        min_samples_split=2,
        min_impurity_decrease=0.0,
        max_bins=255,
        projections="axis",
        leaf_rows="in_bag",
        weighting="tree",
        warm_start=False,
        n_jobs=None,
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.distance = distance
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_impurity_decrease = min_impurity_decrease
        self.max_bins = max_bins
        self.projections = projections
        self.leaf_rows = leaf_rows
        self.weighting = weighting
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.distance != "absolute"
        tags.target_tags.single_output = True
        return tags

    def fit(self, X, y, client=None):
        """Grow the trees and tabulate what their leaves predict; return self.

        Parameters
        ----------
        X : (n, p) array-like, scipy sparse, `Dataset` or its path
            Features; NaN where unknown.
        y : (n,) or (n, q) array-like
            Finite numbers; several responses for "half_squared". A pandas ``y`` is matched to X by
            label.
        client : distributed.Client, optional
            Grow on its cluster; else on the active client's, else on threads of this process.

        Raises
        ------
        DataError
            X and y do not fit together, or hold what they must not.
        SpecError
            A parameter is out of its range, or asks for rows out of bag where there are none.
        """
        check_choice("distance", self.distance, ("half_squared", "absolute"))
        self._learn(read_features(X, model=type(self).__name__), y, client)
        self._is_flat = len(shape_of_response(y)) == 1
        return self

    def predict(self, X):
        """Numbers of each row: (a,), or (a, q) if y had columns; float64."""
        return self._shaped(self._predict(X))

    def oob_predict(self):
        """Numbers of the training rows, by the trees that were not grown on them.

        Where such rows vote in the leaves (honest trees), a row's own vote is left out.

        Returns
        -------
        (n,) or (n, q) float64
            NaN where ``oob_count_`` is 0.
        """
        return self._shaped(self._out_of_bag().value)

    @property
    def oob_score_(self):
        """R^2 of `oob_predict` over the rows that it tells, a mean over responses."""
        found = self._out_of_bag().value
        told = ~np.isnan(found[:, 0])
        if told.sum() < 2:
            return np.nan
        y = self._given.arrays["y"].reshape(len(found), -1)
        return float(r2_score(y[told], found[told]))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._is_flat else values

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts that `save` stores."""
        arrays, facts = super().to_arrays()
        return arrays, facts | {"is_flat": self._is_flat}

    def from_arrays(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]):
        """Take over what was stored; return self."""
        super().from_arrays(arrays, facts)
        self._is_flat = facts["is_flat"]
        return self


@preset(weighting="kernel")
class KernelForestRegressor(ForestRegressor):
    """Tell numbers by kernel regression, the kernel being how often rows share a leaf (KeRF).

    A `ForestRegressor` that weighs the leaves of all trees by the rows that vote in them. With
    "half_squared" that is equation (2), the sum of Y K(x, X_i) over the sum of K(x, X_i), where K
    is `connection`, and rows vote as often as a tree drew them. It equals a random forest where
    every leaf holds as many votes.

    Parameters and attributes are those of `ForestRegressor`; the default is ``weighting="kernel"``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = X.sum(axis=1)
    >>> forest = KernelForestRegressor(bootstrap=False, min_samples_leaf=5, random_state=0)
    >>> K = forest.fit(X, y).connection(X[:9], X, sparse=False)
    >>> np.allclose(K @ y / K.sum(axis=1), forest.predict(X[:9]))
    True
    """
