"""The table of named distances: one line each. Whatever is known of a distance is known here."""

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dforest.arrays import check_choice
from dforest.distances import vectors
from dforest.errors import DataError, SpecError

LIMIT = 1e150  # |x| up to here: squares of gaps, and sums of them, stay within float64
LARGEST_LOG = 307.0  # of the sum of a pair, in powers of ten

Options = dict[str, Any]


@dataclass(frozen=True)
class Distance:
    """A distance as the table knows it.

    Attributes
    ----------
    name : str
    kind : str
        Of the objects: "vectors" are rows of features.
    is_symmetric : bool
    is_metric : bool
        Whether d(x, x) = 0 and the triangle inequality hold, for all options.
    prepare : callable, (rows, first, what, options) -> prepared
        Checks some objects and gives them the form that ``sweep`` takes. Messages call them
        ``what[first]``, ``what[first + 1]``, ... What is prepared depends on no other object.
    sweep : callable, (prepared, prepared, options, out, left)
        Writes all distances of two blocks to ``out[:, left : left + b]``, float64.
    options : mapping of name to callable, (value, n_features) -> value
        Checks of the options; each is None unless given. Values are small, and travel.
    """

    name: str
    kind: str
    is_symmetric: bool
    is_metric: bool
    prepare: Callable[[Any, int, str, Options], Any]
    sweep: Callable[[Any, Any, Options, np.ndarray, int], None]
    options: Mapping[str, Callable[[Any, int], Any]] = field(default_factory=dict)

    def check(self, options: Options, n_features: int) -> Options:
        """All options, checked; SpecError names one that is wrong or unknown."""
        for name in options:
            if not self.options:
                raise SpecError(f"distance {self.name!r} takes no options, got {name!r}")
            check_choice(f"option of distance {self.name!r}", name, self.options)
        return {name: check(options.get(name), n_features) for name, check in self.options.items()}


# Vectors ---------------------------------------------------------------------------------------


def _as_vectors(rows: np.ndarray, first: int, what: str, options: Options) -> np.ndarray:
    """Rows (m, p) as C-contiguous float64; refuses NaN and what could overflow."""
    rows = np.ascontiguousarray(rows, np.float64)
    sizes = np.abs(rows)
    if not sizes.max() <= LIMIT:  # NaN is not
        i, j = np.argwhere(~(sizes <= LIMIT))[0]
        why = "a distance to an unknown value is not defined; fill it in, or leave the row out"
        if not np.isnan(rows[i, j]):
            why = f"the largest allowed is {LIMIT:g}, as squares would overflow; rescale"
        raise DataError(f"{what}[{first + i}, {j}] is {rows[i, j]:g}: {why}")
    return rows


def _as_powers(rows, first: int, what: str, options: Options) -> np.ndarray:
    """Rows whose powers do not overflow."""
    rows, exponent, weights = _as_vectors(rows, first, what, options), options["p"], options["w"]
    with np.errstate(divide="ignore"):
        logs = exponent * np.log10(2.0 * np.abs(rows).max(axis=1))
        room = LARGEST_LOG - np.log10(rows.shape[1] if weights is None else weights.sum())
    if logs.max() > room:
        i = int(logs.argmax())
        raise DataError(
            f"{what}[{first + i}] holds {np.abs(rows[i]).max():g}, whose power {exponent:g} "
            "overflows; rescale, or lower p"
        )
    return rows


def _as_directions(rows, first: int, what: str, options: Options) -> np.ndarray:
    """Rows of length 1."""
    why = "is all zeros, and has no direction: its cosine distance is not defined"
    return _as_units(_as_vectors(rows, first, what, options), first, what, False, why)


def _as_profiles(rows, first: int, what: str, options: Options) -> np.ndarray:
    """Rows of mean 0 and length 1."""
    why = "is constant: its correlation distance is not defined"
    return _as_units(_as_vectors(rows, first, what, options), first, what, True, why)


def _as_units(rows, first: int, what: str, is_centred: bool, why: str) -> np.ndarray:
    units = vectors.unit_rows(rows, is_centred)
    lost = np.flatnonzero(np.isnan(units[:, 0]))
    if lost.size:
        raise DataError(f"{what}[{first + lost[0]}] {why}; leave the row out")
    return units


def _minkowski(n_features: int, options: Options) -> Any:
    exponent, weights = options["p"], options["w"]
    weights = np.ones(n_features) if weights is None else weights
    if exponent == 1:
        return vectors.WeightedSizes(weights)
    if exponent == 2:
        return vectors.WeightedSquares(weights)
    if exponent in range(3, 8):
        return vectors.WholePowers(weights, int(exponent))
    return vectors.Powers(weights, exponent)


def _exponent(value: Any, n_features: int) -> float:
    value = 2.0 if value is None else value
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise SpecError(f"p={value!r} is a {type(value).__name__}; give a number of at least 1")
    exponent = float(value)
    if exponent == np.inf:
        raise SpecError("p=inf is distance='chebyshev'; ask for that")
    if not exponent >= 1:
        raise SpecError(f"p={exponent:g} is below 1, which gives no metric; give at least 1")
    return exponent


def _weights(value: Any, n_features: int) -> np.ndarray | None:
    if value is None:
        return None
    try:
        weights = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise SpecError(f"w={value!r:.60} holds no numbers; give one a feature") from None
    if weights.shape != (n_features,):
        raise SpecError(
            f"w has shape {weights.shape}; give one weight for each of {n_features} features"
        )
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LIMIT)))
    if bad.size:
        raise SpecError(f"w[{bad[0]}]={weights[bad[0]]:g} is out of range; give 0 to {LIMIT:g}")
    if not weights.any():
        raise SpecError("w is all zeros; give some feature a weight")
    return weights


def _of_vectors(name: str, is_metric: bool, prepare, measure, **options) -> Distance:
    """Line of a distance between vectors; ``measure(p, options)`` is what the sweep adds up."""

    def sweep(ones, others, options, out, left):
        vectors.sweep(measure(ones.shape[1], options), ones, others, out, left)

    return Distance(name, "vectors", True, is_metric, prepare, sweep, options)


def _squares(divisor: float, is_rooted: bool):
    return lambda p, options: vectors.Squares(divisor, is_rooted)


TABLE: dict[str, Distance] = {
    line.name: line
    for line in (
        _of_vectors("euclidean", True, _as_vectors, _squares(1.0, True)),
        _of_vectors("sqeuclidean", False, _as_vectors, _squares(1.0, False)),
        _of_vectors("minkowski", True, _as_powers, _minkowski, p=_exponent, w=_weights),
        _of_vectors("manhattan", True, _as_vectors, lambda p, options: vectors.Sizes()),
        _of_vectors("chebyshev", True, _as_vectors, lambda p, options: vectors.Largest()),
        _of_vectors("cosine", False, _as_directions, _squares(2.0, False)),
        _of_vectors("correlation", False, _as_profiles, _squares(2.0, False)),
        _of_vectors("hamming", True, _as_vectors, lambda p, options: vectors.Unequal(float(p))),
    )
}
