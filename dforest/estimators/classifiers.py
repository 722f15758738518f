"""Forests that tell classes: random, honest (Uncertainty Forest), and kernel forests (KeRF)."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import accuracy_score

from dforest.arrays import as_labels, check_choice
from dforest.estimators.inputs import read_features
from dforest.estimators.saving import model
from dforest.estimators.voting import VotingForest, preset, shape_of_response
from dforest.methods.calibration import METHODS, Calibrator, calibrate, cross_fitted
from dforest.methods.model import under


@model
class ForestClassifier(ClassifierMixin, VotingForest):
    """Tell classes and their posteriors by a random forest.

    Trees split the rows so that the mean distance within the parts falls most, where the distance
    of two rows is 1 if their classes differ: the Gini criterion. The same class is an Uncertainty
    Forest or a kernel forest by choice of ``leaf_rows`` and ``weighting``.

    Parameters
    ----------
    n_estimators : int
        Trees.
    distance : {"indicator"}
        What is split on.
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
        Average the trees' posteriors, or count the votes of all trees and divide once (KeRF).
    calibration : {"sigmoid", "isotonic", "temperature"} or None
        Map from votes to posteriors, fitted on the votes that each training row gets from trees
        not grown on it, without a refit: a logistic curve for each class, a monotone one, or one
        temperature and a shift for each class.
    warm_start : bool
        Keep the trees of the last fit, if only ``n_estimators`` has grown, and add some. Give the
        same X and y again: only their shapes are compared.
    n_jobs : int or None
        Threads of this process; None for all processors.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    classes_ : (K,)
        Labels, sorted.
    n_features_in_ : int
    feature_names_in_ : (p,) str
        Only if X had names.
    feature_importances_ : (p,) float64
        Share of all gains made by each feature's splits; sums to 1.
    oob_count_ : (n,) int64
        Trees for which each training row was out of bag.
    oob_score_ : float
        Share of training rows told rightly by the trees not grown on them.
    n_leaves_ : (T,) int

    Notes
    -----
    Averages of trees are posteriors, but not calibrated ones: of the choices here only
    ``calibration`` makes them so. NaN in X goes to the side that gains more.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> forest = ForestClassifier(calibration="isotonic", random_state=0).fit(X, y)
    >>> forest.predict([[0.9, 0.2], [0.1, 0.2]]).tolist()
    ['high', 'low']
    >>> forest.predict_proba([[0.9, 0.2], [0.1, 0.2]]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    classes_: np.ndarray
    _calibrator: Calibrator | None

    def __init__(
        self,
        n_estimators=100,
        *,
        distance="indicator",
        max_samples=None,
        bootstrap=True,
        max_features="sqrt",
        max_depth=None,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        min_samples_split=2,
        min_impurity_decrease=0.0,
        max_bins=255,
        projections="axis",
        leaf_rows="in_bag",
        weighting="tree",
        calibration=None,
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
        self.calibration = calibration
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y, client=None):
        """Grow the trees, count the votes in their leaves, calibrate; return self.

        Parameters
        ----------
        X : (n, p) array-like, scipy sparse, `Dataset` or its path
            Features; NaN where unknown.
        y : (n,) array-like
            Labels of any kind that can be sorted. A pandas series is matched to X by label.
        client : distributed.Client, optional
            Grow on its cluster; else on the active client's, else on threads of this process.

        Raises
        ------
        DataError
            X and y do not fit together, or hold what they must not.
        SpecError
            A parameter is out of its range, or asks for rows out of bag where there are none.
        """
        check_choice("distance", self.distance, ("indicator",))
        check_choice("calibration", self.calibration, (None, *METHODS))
        X = read_features(X, model=type(self).__name__)
        if shape_of_response(y)[1:] == (1,):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; give y.ravel()",
                DataConversionWarning,
                stacklevel=2,
            )
        codes, classes = as_labels(y, X.values.shape[0], labels=X.labels)
        self._learn(X, codes, client)
        self.classes_, self._calibrator = classes, None
        if self.calibration is not None:
            self._calibrator = calibrate(self.calibration, self._out_of_bag().value, codes)
        return self

    # Answers -----------------------------------------------------------------------------------

    def predict(self, X):
        """The most likely class of each row: (a,) labels.

        It is the class of the largest posterior in `predict_proba`, and of equal ones the first in
        ``classes_``.
        """
        found = self.predict_proba(X)
        return self.classes_[found.argmax(axis=1)]

    def predict_proba(self, X):
        """Posteriors of the classes, in the order of ``classes_``: (a, K) float64.

        Each row sums to 1. Every class has its column, however rare.
        """
        found = self._predict(X)
        return found if self._calibrator is None else self._calibrator(found)

    def oob_proba(self):
        """Posteriors of the training rows, by the trees that were not grown on them.

        Where such rows vote in the leaves (honest trees), a row's own vote is left out. Calibrated
        posteriors are cross-fitted: the map was fitted on other rows.

        Returns
        -------
        (n, K) float64
            NaN where ``oob_count_`` is 0.
        """
        votes = self._out_of_bag().value
        if self._calibrator is None:
            return votes
        y, seed = self._given.arrays["y"], self._forest.recipe.seed
        return cross_fitted(self._calibrator.method, votes, y, seed)

    @property
    def oob_score_(self):
        """Accuracy of `oob_proba` over the rows that it tells; NaN if it tells none."""
        found, y = self.oob_proba(), self._given.arrays["y"]
        told = ~np.isnan(found[:, 0])
        if not told.any():
            return np.nan
        return float(accuracy_score(y[told], found[told].argmax(axis=1)))

    # Keeping -----------------------------------------------------------------------------------

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts that `save` stores."""
        arrays, facts = super().to_arrays()
        if self._calibrator is not None:
            own = self._calibrator.arrays
            arrays |= {f"calibrator.{name}": array for name, array in own.items()}
            facts["calibration"] = self._calibrator.method
        return arrays, facts | {"classes": _to_plain(self.classes_)}

    def from_arrays(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]):
        """Take over what was stored; return self."""
        super().from_arrays(arrays, facts)
        self.classes_, method = _from_plain(facts["classes"]), facts.get("calibration")
        own = under("calibrator.", arrays)
        self._calibrator = None if method is None else Calibrator(method, own)
        return self


def _to_plain(classes: np.ndarray) -> dict[str, Any]:
    """Labels as JSON can say them: their dtype and a list."""
    kind = classes.dtype.kind
    plain = classes.astype(np.int64) if kind in "mM" else classes
    if kind == "S":
        plain = np.char.decode(classes, "latin-1")
    return {"dtype": classes.dtype.str, "labels": plain.tolist()}


def _from_plain(said: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(said["dtype"])
    if dtype.kind == "S":
        return np.char.encode(np.array(said["labels"], str), "latin-1").astype(dtype)
    plain = np.array(said["labels"], np.int64 if dtype.kind in "mM" else dtype)
    return plain.astype(dtype)


@preset(leaf_rows="out_of_bag", bootstrap=False, max_samples=0.5)
class UncertaintyForestClassifier(ForestClassifier):
    """Tell posteriors by honest trees: the rows that vote in a leaf did not shape the tree.

    A `ForestClassifier` whose trees each grow on half of the rows, drawn without replacement, and
    let the other half vote (Uncertainty Forest). A single tree's posteriors are then unbiased; the
    average of many is under-confident where classes are separable, which ``calibration`` mends.

    Parameters and attributes are those of `ForestClassifier`; the defaults are
    ``leaf_rows="out_of_bag"``, ``bootstrap=False``, ``max_samples=0.5``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, coin = rng.random((500, 2)), rng.integers(0, 2, 500)
    >>> forest = UncertaintyForestClassifier(random_state=0).fit(X, coin)
    >>> bool(abs(forest.oob_score_ - 0.5) < 0.1)
    True
    """


@preset(weighting="kernel")
class KernelForestClassifier(ForestClassifier):
    """Tell posteriors by kernel regression, the kernel being how often rows share a leaf (KeRF).

    A `ForestClassifier` that counts the votes of all trees and divides once: equation (2), the sum
    of Y K(x, X_i) over the sum of K(x, X_i), where K is `connection`, and rows vote as often as a
    tree drew them. Large leaves thus count more. It equals a random forest where every leaf holds
    as many votes.

    Parameters and attributes are those of `ForestClassifier`; the default is
    ``weighting="kernel"``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = X[:, 0] > 0.5
    >>> forest = KernelForestClassifier(bootstrap=False, min_samples_leaf=5, random_state=0)
    >>> K = forest.fit(X, y).connection(X[:9], X, sparse=False)
    >>> np.allclose(K @ y / K.sum(axis=1), forest.predict_proba(X[:9])[:, 1])
    True
    """
