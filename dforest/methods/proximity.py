"""Kernels of random forests (KeRF; Scornet 2016) in closed form: as of infinitely many trees.

K(x, z) is the share of trees in which x and z are in one cell, equation (1). These trees split all
their cells ``depth`` times, each time on a feature drawn anew; the data play no part. Of the k
splits on the way to x, N_j fall on feature j, and features are cut independently of each other:

    K(x, z) = E prod_j together_j(N_j),     (N_1, ..., N_d) multinomial, k draws.

The N_j are d Poisson(k / d) numbers that happen to add up to k. So K is the coefficient k of a
product of d polynomials, k^2 / 2 steps each, and no term is negative. `dforest.methods.cells` says
what together_j is, and multiplies.
"""

import decimal
import functools
import math
from decimal import Decimal

import numpy as np

from dforest.errors import SpecError
from dforest.methods import cells
from dforest.methods.cells import PANEL, TERMS, Centred, Uniform
from dforest.run.here import Here
from dforest.run.memory import memory_bytes
from dforest.run.passes import Pass

MAX_DEPTH = 62  # cells 2^-62 wide are numbered in int64; float64 hardly tells their ends apart
BLOCK_STEPS = 1 << 22  # pairs x features x depth of one task: tens of milliseconds

Kernel = Centred | Uniform


def centred(depth: int, d: int) -> Centred:
    """Kernel of centred forests on d features."""
    return Centred(*_splits(depth, d))


def uniform(depth: int, d: int, is_shifted: bool = False) -> Uniform:
    """Kernel of uniform forests on d features."""
    return Uniform(*_splits(depth, d), tails_of(depth), is_shifted)


def _splits(k: int, d: int) -> tuple[np.ndarray, float]:
    share = np.array([(k / d) ** m / math.factorial(m) for m in range(k + 1)])
    return share, math.factorial(k) / float(k) ** k


def matrix(kernel: Kernel, ones, others, runner: Here) -> np.ndarray:
    """K of all rows of (a, d) with all of (b, d), in [0, 1]; ``others=None`` means ``ones``.

    Returns (a, b) float64. Bits depend on the two rows alone, and K(x, z) = K(z, x).

    Raises
    ------
    SpecError
        It takes more than half of the memory that this process may use.
    """
    a, b = len(ones), len(ones if others is None else others)
    needed, limit = 8 * a * b, memory_bytes() // 2
    if needed > limit:
        raise SpecError(
            f"all {a:,} x {b:,} values of the kernel take {needed / 2**30:,.2f} GiB, the limit is "
            f"{limit / 2**30:,.2f} (half the memory); ask for fewer rows at once"
        )
    left = _comparable(kernel, ones)
    right = left if others is None else _comparable(kernel, others)
    out = np.empty((a, b))

    def fill(rows):
        cells.fill(kernel, left, right, rows.start, rows.stop, others is None, out)
        return {}

    _over_rows("kernel", fill, a, b * left.shape[1] * len(kernel.share), runner)
    return out


def regress(kernel: Kernel, rows, fitted, y, runner: Here) -> np.ndarray:
    """Kernel regression, equation (2): sum of K(x, X_i) Y_i over sum of K(x, X_i).

    A row that no tree puts into a cell with a fitted row is told the mean of all Y_i.

    Parameters
    ----------
    rows, fitted : (a, d), (n, d) float64 in [0, 1]
    y : (n, q) float64

    Returns
    -------
    (a, q) float64
    """
    left, right = _comparable(kernel, rows), _comparable(kernel, fitted)
    sums, total = np.empty((len(rows), y.shape[1])), np.empty(len(rows))

    def add(block):
        cells.add(kernel, left, right, y, block.start, block.stop, sums, total)
        return {}

    _over_rows("kernel-regression", add, len(rows), right.size * len(kernel.share), runner)
    return weighted_means(sums, total, y)


def weighted_means(sums: np.ndarray, total: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sums (a, q) over totals (a,); the mean of y (n, q) where a total is 0.

    >>> weighted_means(np.array([[6.0], [0.0]]), np.array([2.0, 0.0]), np.array([[1.0], [4.0]]))
    array([[3. ],
           [2.5]])
    """
    out = np.repeat(y.mean(axis=0, keepdims=True), len(sums), axis=0)
    return np.divide(sums, total[:, None], out=out, where=total[:, None] > 0)


def _over_rows(name: str, step, n: int, steps_of_row: int, runner: Here) -> None:
    height = max(1, BLOCK_STEPS // steps_of_row)
    grid = [[slice(i, min(i + height, n))] for i in range(0, n, height)]
    for _ in runner.run(Pass(name, step, grid)):
        pass


def _comparable(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """Rows as a kernel compares them: the numbers of their smallest cells, or as they are."""
    if isinstance(kernel, Uniform):
        return np.ascontiguousarray(X, np.float64)
    numbers = np.ceil(np.ldexp(np.asarray(X, np.float64), len(kernel.share) - 1)).astype(np.int64)
    return np.ascontiguousarray(np.maximum(numbers, 1) - 1)


# Uniform cuts ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=32)
def tails_of(depth: int) -> np.ndarray:
    """Chance that R >= m, m = 0, ..., k, as Taylor series in v on panels of v.

    R is the number of records among n uniform numbers plus that among n others, n geometric with
    mean exp(v) - 1, and exp(v) = z (1 - x) / (z - x). Its generating function is exp(-v) y with y
    Gauss's 2F1(s, s; 1; 1 - exp(-v)), whose equation is the system

        y' = b / (exp(v) - 1),     b' = 2 s b + s^2 y.

    So the coefficients of y come one from the other without a subtraction, and so do their sums
    from m on, of which the first are known. Behind the last panel all chances are 1.
    """
    with decimal.localcontext(prec=30):  # rounding would add up from panel to panel
        left = np.array([[Decimal(0)] * (depth + 1)] * 2)  # exp(-v) y and exp(-2 v) b
        left[0, 0] = Decimal(1)
        right = np.array([Decimal(PANEL) ** i for i in range(TERMS)])
        panels: list[np.ndarray] = []
        while left[0].min() < 1 - Decimal("1e-16"):
            y, b = _series(left, (-Decimal(PANEL) * len(panels)).exp())
            chances = np.array([_times(row, _exp(-1)) for row in y])
            panels.append(chances.T.astype(np.float64))
            left = np.array([chances @ right, b @ right * (-2 * Decimal(PANEL)).exp()])
    return np.array(panels).reshape(-1, TERMS, depth + 1)


def _series(left: np.ndarray, c: Decimal) -> tuple[np.ndarray, np.ndarray]:
    """Series (k + 1, TERMS) of y and b in h from their values (2, k + 1) at v, c = exp(-v)."""
    y, b = np.empty((2, left.shape[1], TERMS), object)
    y[0], counts = _exp(1), np.arange(1, TERMS)
    over = y[0] - c * (np.arange(TERMS) == 0)  # exp(v + h) - 1, scaled as y; at v = 0 it begins
    b[0] = _times(over, y[0])  # with 0, as b does: both are shifted
    shift = -int(c == 1)
    under = _inverse(np.roll(over, shift))
    for m in range(1, left.shape[1]):
        b[m] = np.append(left[1, m], (2 * b[m - 1] + c * y[max(m - 2, 0)])[:-1] / counts)
        y[m] = np.append(left[0, m], _times(np.roll(b[m], shift), under)[:-1] / counts)
    return y, b


def _exp(sign: int) -> np.ndarray:
    return np.array([Decimal(sign) ** i / math.factorial(i) for i in range(TERMS)])


def _times(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.convolve(one, other)[:TERMS]


def _inverse(series: np.ndarray) -> np.ndarray:
    out = np.array([1 / series[0]] * TERMS)
    for i in range(1, TERMS):
        out[i] = -(out[:i] @ series[i:0:-1]) / series[0]
    return out
