"""Kernels of random forests in closed form (KeRF), and regression by a kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin

from dforest.arrays import as_response, check_choice, check_count
from dforest.errors import DataError, NotFittedError
from dforest.estimators.inputs import read_features
from dforest.estimators.saving import model, save_model
from dforest.methods import proximity
from dforest.run.client import place
from dforest.run.here import Here

KERNELS: dict[str, Callable[..., proximity.Kernel]] = {
    "centred": proximity.centred,
    "uniform": proximity.uniform,
}


def kerf_centred(XA, XB, depth, *, n_jobs=None):
    """Kernel of a centred random forest of infinitely many trees.

    K(x, z) is the share of trees in which x and z are in one cell. A tree halves all its cells
    ``depth`` times, each time along a feature drawn anew; the data play no part (Scornet 2016).

    Parameters
    ----------
    XA, XB : (a, d), (b, d) array-like with values in [0, 1]
        XB=None means XA. A row on a border belongs to the cell below it.
    depth : int
        Splits on the way to a leaf, 0 to 62. Scornet takes floor(log2 n) for n rows to learn from.
    n_jobs : int, optional
        Threads; None for all processors.

    Returns
    -------
    (a, b) float64
        In [0, 1], symmetric, positive semi-definite, 1 for equal rows (to rounding). The bits
        depend on the two rows alone.

    Raises
    ------
    DataError
        A value that is unknown or outside of [0, 1], or sides with different features.
    SpecError
        ``depth`` is out of range, or the matrix takes more than half of the memory.

    Notes
    -----
    With L_j the largest m, up to k = ``depth``, for which ceil(2^m x_j) = ceil(2^m z_j) (0 counts
    as 1), K is the chance that k splits, each on one of d features at random, are at most L_j on
    each: k! / d^k times the coefficient of t^k in the product over j of sum_{m <= L_j} t^m / m!.
    It takes some 10 ns a pair and feature at depth 10 (one core).

    Examples
    --------
    >>> kerf_centred([[0.3, 0.7]], [[0.4, 0.6], [0.9, 0.7]], depth=3)
    array([[0.75 , 0.125]])

    In scikit-learn, as a matrix or as a function:

    >>> from functools import partial
    >>> from sklearn.svm import SVC
    >>> X, y = [[0.1], [0.4], [0.6], [0.9]], [0, 0, 1, 1]
    >>> SVC(kernel="precomputed").fit(kerf_centred(X, None, 1), y).predict(
    ...     kerf_centred([[0.3]], X, 1))
    array([0])
    >>> SVC(kernel=partial(kerf_centred, depth=1)).fit(X, y).predict([[0.3]])
    array([0])
    """
    return _kernel("centred", XA, XB, depth, n_jobs)


def kerf_uniform(XA, XB, depth, *, shifted=False, n_jobs=None):
    """Kernel of a uniform random forest of infinitely many trees.

    K(x, z) is the share of trees in which x and z are in one cell. A tree cuts all its cells
    ``depth`` times at a uniform place, each time along a feature drawn anew; the data play no part.

    Parameters
    ----------
    XA, XB : (a, d), (b, d) array-like with values in [0, 1]
        XB=None means XA.
    depth : int
        Splits on the way to a leaf, 0 to 62. Scornet takes floor(log2 n) for n rows to learn from.
    shifted : bool
        K(0, |x - z|), which Scornet computes instead of K(x, z): as if one row were in the corner
        of the cube. They differ: for 0.5 and 0.7 at depth 2, .478 and .590.
    n_jobs : int, optional
        Threads; None for all processors.

    Returns
    -------
    (a, b) float64
        In [0, 1], symmetric, positive semi-definite, 1 for equal rows (to rounding). The bits
        depend on the two rows alone.

    Raises
    ------
    DataError
        A value that is unknown or outside of [0, 1], or sides with different features.
    SpecError
        ``depth`` is out of range, or the matrix takes more than half of the memory.

    Notes
    -----
    With f_m(x, z) the chance that m cuts of one feature leave x and z together, K is k! / d^k times
    the coefficient of t^k in the product over j of sum_m f_m(x_j, z_j) t^m / m!. For x < z,

        f_m = 1 - sum_{r < m} [s^r] (z - x) (z (1 - x))^-s 2F1(s, s; 1; 1 - (z - x) / (z (1 - x))),

    where [s^r] takes the coefficient of s^r. With w = z - x this is 1 - w for one cut, and
    1 - w + w log(z (1 - x)) for two (Scornet's Lemma 1 as it must read); for x = 0 it is
    1 - z sum_{r < m} (-log z)^r / r!, his proposition. All digits are kept where K is small.
    It takes some 140 ns a pair and feature at depth 10 (one core).

    Examples
    --------
    >>> kerf_uniform([[0.5]], [[0.7]], depth=2).round(3)
    array([[0.59]])
    >>> kerf_uniform([[0.5]], [[0.7]], depth=2, shifted=True).round(3)
    array([[0.478]])
    """
    is_shifted = check_choice("shifted", shifted, (False, True))
    return _kernel("uniform", XA, XB, depth, n_jobs, is_shifted)


def _kernel(name: str, XA, XB, depth, n_jobs, *options) -> np.ndarray:
    depth = check_count("depth", depth, 0, proximity.MAX_DEPTH)
    ones = _in_unit_cube(read_features(XA, what="XA").values, "XA")
    others = None
    if XB is not None:
        others = _in_unit_cube(read_features(XB, what="XB").values, "XB")
        widths = ones.shape[1], others.shape[1]
        if widths[0] != widths[1]:
            raise DataError(f"XA has {widths[0]} features, XB has {widths[1]}; give both the same")
    kernel = KERNELS[name](depth, ones.shape[1], *options)
    return proximity.matrix(kernel, ones, others, _here(n_jobs))


def _in_unit_cube(X: Any, what: str) -> np.ndarray:
    """Dense float64 rows; a value that is not in [0, 1] is refused."""
    values = _known(X, what)
    way_out = (
        "the cells of these forests part [0, 1] in each feature; scale them by "
        "MinMaxScaler(clip=True)"
    )
    return _refuse((values < 0.0) | (values > 1.0), values, what, way_out)


def _known(X: Any, what: str) -> np.ndarray:
    """Dense float64 rows; NaN is refused."""
    values = np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    way_out = "an unknown value has no cell; fill it in by SimpleImputer"
    return _refuse(np.isnan(values), values, what, way_out)


def _refuse(bad: np.ndarray, values: np.ndarray, what: str, way_out: str) -> np.ndarray:
    """Refuse ``values`` by the first of them that is bad, else return them."""
    if bad.any():
        i, j = np.unravel_index(bad.argmax(), bad.shape)
        value = "NaN" if np.isnan(values[i, j]) else f"{values[i, j]:g}"
        raise DataError(f"{what}[{i}, {j}] is {value}: {way_out}")
    return values


def _here(n_jobs) -> Here:
    runner = place(n_jobs=n_jobs)
    return runner if isinstance(runner, Here) else Here(n_jobs)


@model
class KernelRegressor(RegressorMixin, BaseEstimator):
    """Predict by kernel regression: sum of K(x, X_i) Y_i over sum of K(x, X_i).

    With the kernel of a forest this is KeRF, equation (2), of infinitely many trees. Any other
    kernel that is never negative may be given as a matrix.

    Parameters
    ----------
    kernel : {"uniform", "centred", "precomputed"}
        `kerf_uniform`, `kerf_centred`, or: X is the kernel's matrix, (n, n) in ``fit`` and (a, n)
        in ``predict``.
    depth : int, optional
        Depth of the trees, 0 to 62; None for floor(log2 n), as in Scornet's experiments.
    scale : bool
        Map each feature to [0, 1] by its range in ``fit``; what is beyond it later counts as its
        end. False leaves X as it is, and refuses values outside of [0, 1].
    n_jobs : int, optional
        Threads; None for all processors.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : (d,) str
        Only if X had names.
    depth_ : int
        0 for "precomputed".

    Notes
    -----
    A row that shares a cell with no fitted row in any tree has no such prediction: 0/0. It is told
    the mean of all Y_i, as by a forest of depth 0. That happens with "centred", and with a matrix;
    uniform cells reach everywhere. The matrix of the kernel is never held.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> regressor = KernelRegressor(depth=20).fit(X, X[:, 0])
    >>> bool(regressor.score(X, X[:, 0]) > 0.95)
    True
    """

    feature_names_in_: np.ndarray

    def __init__(self, kernel="uniform", depth=None, *, scale=True, n_jobs=None):
        self.kernel = kernel
        self.depth = depth
        self.scale = scale
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Keep the rows and their responses; return self.

        Parameters
        ----------
        X : (n, d) array-like, or the kernel's matrix (n, n)
        y : (n,) or (n, q) array-like

        Raises
        ------
        DataError
            X and y do not fit together, or X holds what it must not.
        SpecError
            A parameter is out of its range.
        """
        check_choice("kernel", self.kernel, [*KERNELS, "precomputed"])
        check_choice("scale", self.scale, (False, True))
        read = read_features(X, model=type(self).__name__)
        n, width = read.values.shape
        self.depth_ = self._depth_of(n)
        response = as_response(y, n, labels=read.labels)
        if self.kernel == "precomputed" and n != width:
            raise DataError(f"X is {n} x {width}: the matrix of a kernel is square in fit")
        values = _known(read.values, "X")
        self._range = np.array([values.min(axis=0), values.max(axis=0)])
        self._X = self._rows(values)[: 0 if self.kernel == "precomputed" else n]
        self._y, self._is_flat = response, np.asarray(y).ndim == 1
        self.n_features_in_ = width
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if read.names is not None:
            self.feature_names_in_ = np.asarray(read.names, object)
        return self

    def predict(self, X):
        """Predict the response of rows (a, d), or of rows of a matrix (a, n): (a,) or (a, q)."""
        self._check_fitted()
        read = read_features(
            X,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=self.n_features_in_,
            model=type(self).__name__,
        )
        rows = self._rows(_known(read.values, "X"))
        if self.kernel == "precomputed":
            found = proximity.weighted_means(rows @ self._y, rows.sum(axis=1), self._y)
        else:
            kernel = KERNELS[self.kernel](self.depth_, self.n_features_in_)
            found = proximity.regress(kernel, rows, self._X, self._y, _here(self.n_jobs))
        return found[:, 0] if self._is_flat else found

    # Keeping -----------------------------------------------------------------------------------

    def save(self, path):
        """Save the fitted model as one store, whole or absent; `dforest.load` reads it."""
        self._check_fitted()
        save_model(self, path)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts that `save` stores."""
        arrays = {"X": self._X, "y": self._y, "range": self._range}
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names"] = np.asarray(self.feature_names_in_, str)
        return arrays, {"depth": self.depth_, "is_flat": self._is_flat}

    def from_arrays(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]):
        """Take over what was stored; return self."""
        self._X, self._y, self._range = (arrays[name] for name in ("X", "y", "range"))
        self.depth_, self._is_flat = facts["depth"], facts["is_flat"]
        self.n_features_in_ = self._range.shape[1]
        if "feature_names" in arrays:
            self.feature_names_in_ = np.asarray(arrays["feature_names"], object)
        return self

    # Inside ------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_y")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # few rows in many dimensions are smoothed away
        return tags

    def _check_fitted(self) -> None:
        if not hasattr(self, "_y"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit, or dforest.load"
            )

    def _depth_of(self, n: int) -> int:
        if self.kernel == "precomputed":
            return 0
        if self.depth is None:
            return min(n.bit_length() - 1, proximity.MAX_DEPTH)
        return check_count("depth", self.depth, 0, proximity.MAX_DEPTH)

    def _rows(self, values: np.ndarray) -> np.ndarray:
        """Rows in the unit cube, or of the kernel's matrix."""
        if self.kernel == "precomputed":
            return _refuse(values < 0.0, values, "X", "responses are weighed by at least 0")
        if not self.scale:
            return _in_unit_cube(values, "X")
        low, high = self._range / 2.0  # halved, as a range may be larger than float64
        width = np.where(high > low, high - low, 1.0)
        return np.clip((values / 2.0 - low) / width, 0.0, 1.0)
