"""Distances of two blocks of objects, by a name of the table or by a Python callable.

A measure is what blocks are compared by: `Named` or `Called`. Both travel to workers.

>>> measure = measure_of("manhattan", n_features=2)
>>> ones = measure.prepare(np.array([[0.0, 0.0], [1.0, 3.0]]))
>>> out = np.empty((2, 2))
>>> measure.sweep(ones, ones, out)
>>> out
array([[0., 4.],
       [4., 0.]])
"""

import hashlib
import numbers
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dforest.arrays import check_choice
from dforest.distances.table import TABLE, Distance
from dforest.errors import DataError, SpecError


@dataclass(frozen=True)
class Named:
    """A distance of the table, with its options checked."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> Distance:
        """What the table says."""
        return TABLE[self.name]

    @property
    def is_symmetric(self) -> bool:
        """Whether d(x, y) = d(y, x)."""
        return self.line.is_symmetric

    @property
    def fingerprint(self) -> str:
        """Of all that decides its values."""
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in self.options.items()}
        return repr((self.name, plain))

    def prepare(self, rows: Any, first: int = 0, what: str = "A") -> Any:
        """Check some objects, the first being ``what[first]``, and give them `sweep`'s form."""
        return self.line.prepare(rows, first, what, self.options)

    def sweep(self, ones: Any, others: Any, out: np.ndarray, left: int = 0) -> None:
        """Write all distances of two prepared blocks to ``out[:, left : left + b]``, float64."""
        self.line.sweep(ones, others, self.options, out, left)


class Numbered(NamedTuple):
    """Some rows, and where they are from: for messages."""

    rows: np.ndarray  # (m, p), read-only
    first: int
    what: str


@dataclass(frozen=True)
class Called:
    """A Python callable ``d(x, y)`` of two rows, called once for each pair.

    It is taken to be symmetric only if its user says so: then it is called for one of (x, y) and
    (y, x).
    """

    function: Callable[[Any, Any], float]
    is_symmetric: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return getattr(self.function, "__name__", repr(self.function))

    @property
    def fingerprint(self) -> str:
        """Of the code of a plain function; anything else is another one each time."""
        code = _code_of(self.function)
        return uuid.uuid4().hex if code is None else hashlib.sha256(code.encode()).hexdigest()

    def prepare(self, rows: np.ndarray, first: int = 0, what: str = "A") -> Numbered:
        """Rows as they are, but read-only."""
        rows = rows.view()
        rows.flags.writeable = False
        return Numbered(rows, first, what)

    def sweep(self, ones: Numbered, others: Numbered, out: np.ndarray, left: int = 0) -> None:
        """Write all distances of two blocks to ``out[:, left : left + b]``; NaN as it comes.

        Of a block with itself, a symmetric callable is asked for one half.

        Raises
        ------
        DataError
            The callable fails, or returns no number or an infinite one: names the pair.
        """
        is_own = self.is_symmetric and (ones.what, ones.first) == (others.what, others.first)
        for i, x in enumerate(ones.rows):
            start = i if is_own else 0
            for j, y in enumerate(others.rows[start:], start):
                out[i, left + j] = self._of_pair(x, y, ones, i, others, j)
                if is_own:
                    out[j, left + i] = out[i, left + j]

    def _of_pair(self, x, y, ones: Numbered, i: int, others: Numbered, j: int) -> float:
        try:
            found = self.function(x, y)
        except (MemoryError, OSError):  # of the machine, not of the two objects
            raise
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise DataError(f"{_pair(ones, i, others, j)} raised {said:.200}") from error
        found = found.item() if isinstance(found, np.ndarray) and found.size == 1 else found
        if not isinstance(found, numbers.Real):
            raise DataError(
                f"{_pair(ones, i, others, j)} returned {found!r:.60}; a distance is one number"
            )
        if np.isinf(found):
            raise DataError(
                f"{_pair(ones, i, others, j)} is infinite; a distance is finite, or NaN where it "
                "is unknown"
            )
        return float(found)


Measure = Named | Called


def measure_of(
    distance: Any, options: dict[str, Any] | None = None, *, n_features: int, symmetric: Any = None
) -> Measure:
    """Make a measure of a name or a callable.

    Parameters
    ----------
    options : dict, optional
        Of a named distance.
    symmetric : optional
        Anything but None declares a callable symmetric.

    Raises
    ------
    SpecError
        An unknown name, or options that it does not take.
    """
    options = options or {}
    if isinstance(distance, str):
        check_choice("distance", distance, TABLE)
        return Named(distance, TABLE[distance].check(options, n_features))
    if not callable(distance):
        raise SpecError(
            f"distance={distance!r:.60} is a {type(distance).__name__}; give a name, a callable "
            f"d(x, y), or a fitted DistanceForest. Names are {', '.join(TABLE)}"
        )
    if options:
        raise SpecError(
            f"options {', '.join(options)} are for named distances; bind a callable's own with "
            "functools.partial"
        )
    return Called(distance, symmetric is not None)


def _pair(ones: Numbered, i: int, others: Numbered, j: int) -> str:
    return f"distance({ones.what}[{ones.first + i}], {others.what}[{others.first + j}])"


def _code_of(function: Any) -> str | None:
    """All that a plain function says of itself, or None if that is not all that decides.

    Of what it calls, only modules and builtins are trusted not to change.
    """
    if not isinstance(function, types.FunctionType):
        return None
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    keywords = tuple((function.__kwdefaults__ or {}).items())
    named = ((name, function.__globals__.get(name)) for name in sorted(_names(function.__code__)))
    others = tuple(
        (name, value) for name, value in named if not isinstance(value, types.ModuleType)
    )
    values = (cells, function.__defaults__ or (), keywords, others)
    if not _is_plain(values):
        return None
    return repr((function.__module__, function.__qualname__, _as_text(function.__code__), values))


def _names(code: types.CodeType) -> set[str]:
    """Names that code, and code within it, may look up among globals, builtins or attributes."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bytes | int | float)


def _as_text(code: types.CodeType) -> str:
    constants = [
        _as_text(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts
    ]
    return repr((code.co_code.hex(), code.co_names, code.co_freevars, constants))
