"""Kernels of infinite forests: ns a pair, compiled, against products of polynomials in numpy.

The numpy twin takes all pairs at once, feature by feature. "shifted" is K(0, |x - z|), for which
numpy needs no tables; the exact uniform kernel is measured beside it, without a twin. "differs" is
the largest difference of the two answers.
"""

import functools
import math

import numpy as np

import dforest as df
from benchmarks.harness import Row, in_turn, ratio

SIZES = {"toy": [(20, 2, 4)], "full": [(600, 2, 9), (600, 10, 9), (600, 100, 9), (600, 10, 18)]}


def twin(X: np.ndarray, depth: int, stays) -> np.ndarray:
    """Coefficient ``depth`` of the product of the features' polynomials, for all pairs."""
    n, d = X.shape
    product = np.zeros((depth + 1, n, n))
    product[0] = 1.0
    for x in X.T:
        factors = [stays(x, m) / math.factorial(m) for m in range(depth + 1)]
        product = np.array(
            [sum(product[i - m] * factors[m] for m in range(i + 1)) for i in range(depth + 1)]
        )
    return product[depth] * math.factorial(depth) / float(d) ** depth


def stays_centred(x: np.ndarray, m: int) -> np.ndarray:
    """Whether pairs share a cell after m halvings, (n, n)."""
    cell = np.maximum(np.ceil(2.0**m * x), 1)
    return (cell[:, None] == cell).astype(float)


def stays_shifted(x: np.ndarray, m: int) -> np.ndarray:
    """Chance that pairs share a cell after m uniform cuts, were one of them at 0."""
    w = np.maximum(abs(x[:, None] - x), 1e-300)
    return 1 - w * sum((-np.log(w)) ** j / math.factorial(j) for j in range(m))


def compare(n: int, d: int, depth: int) -> Row:
    """One size: our two kernels and the shifted one, in turn with the twins of two."""
    X = np.random.default_rng(0).random((n, d))
    ours = {
        "centred": functools.partial(df.kerf_centred, X, X, depth, n_jobs=1),
        "shifted": functools.partial(df.kerf_uniform, X, X, depth, shifted=True, n_jobs=1),
        "uniform": functools.partial(df.kerf_uniform, X, X, depth, n_jobs=1),
    }
    theirs = {
        "centred": functools.partial(twin, X, depth, stays_centred),
        "shifted": functools.partial(twin, X, depth, stays_shifted),
    }
    seconds = in_turn(*ours.values(), *theirs.values(), repeats=3).T
    row: Row = {"n": n, "d": d, "depth": depth}
    for name, ran in zip(ours, seconds):
        row[f"ns a pair, {name}"] = float(np.median(ran)) * 1e9 / n**2
    for name, ran in zip(theirs, seconds[3:]):
        row[f"ns, {name} numpy"] = float(np.median(ran)) * 1e9 / n**2
        row[f"ratio {name}"] = ratio(seconds[list(ours).index(name)], ran)
        row[f"{name} differs"] = float(abs(ours[name]() - theirs[name]()).max())
    return row


def run(scale: str) -> list[Row]:
    return [compare(*size) for size in SIZES[scale]]
