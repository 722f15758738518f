"""The compiled half of `dforest.methods.proximity`: one row with ``LANES`` others at a time.

A kernel is a NamedTuple with one verb, chosen by its class when numba compiles:

========= ====================================================================
together  chance that x and z stay in one cell through 1, ..., k cuts of a feature
========= ====================================================================

Bits of K(x, z) depend on x and z alone, and are those of K(z, x). Loops over lanes are SIMD: their
length must not be a constant, or they are unrolled before that.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit, overload

LANES = 32
PANEL, TERMS = 0.25, 16  # width of the panels of ``Uniform.tails``, terms of a series


class Centred(NamedTuple):
    """Cells are halved: ]a, b] into ]a, (a + b) / 2] and the rest; 0 is in the first."""

    share: np.ndarray  # (k + 1,) chance that m splits fall on a feature, over exp(-k / d)
    scale: float  # one over the chance that all are k, times exp(-k)


class Uniform(NamedTuple):
    """Cells are cut at a uniform place.

    Let x < z, and let uniform points come at unit rate. A point cuts the cell of x and z if it
    falls between them, or is nearer to them on its side than any before: a record. So the cuts that
    leave them together are the records before a point falls between. There are
    Poisson(-log z (1 - x)) + R of them, with R as `dforest.methods.proximity.tails_of` says. R is 0
    where x = 0: this is Scornet's K(0, z).
    """

    share: np.ndarray
    scale: float
    tails: np.ndarray  # (panels, TERMS, k + 1) of R
    is_shifted: bool  # K(0, |x - z|) instead of K(x, z)


class Lanes(NamedTuple):
    """What a task works in."""

    stays: np.ndarray  # (k + 1, LANES)
    product: np.ndarray  # (k + 1, LANES)
    chances: np.ndarray  # (k + 1, LANES)
    poisson: np.ndarray  # (k + 1, LANES)
    mean: np.ndarray  # (LANES,)
    more: np.ndarray  # (LANES,)
    term: np.ndarray  # (LANES,)
    series: np.ndarray  # (k + 1,)


@jit
def _lanes(size):
    a, b = np.empty((4, size, LANES)), np.empty((3, LANES))
    return Lanes(a[0], a[1], a[2], a[3], b[0], b[1], b[2], np.empty(size))


def together(kernel, x, others, lanes):
    """Write the chances (m, lane) to ``lanes.stays``; return the last m that has any."""
    raise TypeError("for compiled code")


def _together_centred(kernel, x, others, lanes):
    k, n = len(lanes.stays) - 1, len(others)
    for m in range(1, k + 1):
        row, found = lanes.stays[m], 0
        for j in range(n):
            same = x >> (k - m) == others[j] >> (k - m)
            row[j] = 1.0 if same else 0.0
            found += same
        if found == 0:
            return m - 1
    return k


def _together_uniform(kernel, x, others, lanes):
    chances, poisson, more = lanes.chances, lanes.poisson, lanes.more
    k, n = len(poisson) - 1, len(others)
    for j in range(n):
        low, high = min(x, others[j]), max(x, others[j])
        gap = high - low
        if kernel.is_shifted:
            low, high = 0.0, gap
        poisson[0, j] = high * (1.0 - low) if gap > 0.0 else 1.0
        lanes.mean[j] = -np.log(poisson[0, j])
        v = max(0.0, -np.log(gap) - lanes.mean[j]) if gap > 0.0 else np.inf
        _look_up(kernel.tails, v, lanes.series)
        for m in range(k + 1):
            chances[m, j] = lanes.series[m]
    _poisson(lanes)
    for m in range(k, 0, -1):
        row, before = lanes.stays[m], poisson[m - 1]
        for j in range(n):
            row[j] = more[j]
        for i in range(m):
            first, rest = poisson[i], chances[m - i]
            for j in range(n):
                row[j] += first[j] * rest[j]
        for j in range(n):
            more[j] += before[j]
    return k


VERBS = {Centred: _together_centred, Uniform: _together_uniform}
overload(together)(lambda kernel, x, others, lanes: VERBS[kernel.instance_class])


@jit
def _look_up(tails, v, out):
    """Chance that R is m or more, at v."""
    if v >= len(tails) * PANEL:
        out[:] = 1.0
        return
    panel = int(v / PANEL)
    h, series = v - panel * PANEL, tails[panel]
    out[:] = series[TERMS - 1]
    for i in range(TERMS - 2, -1, -1):
        row = series[i]
        for m in range(len(out)):
            out[m] = out[m] * h + row[m]


@jit
def _poisson(lanes):
    """Chances of 0, ..., k from that of 0 and the mean; in ``lanes.more``, that of k or more."""
    poisson, mean, more, term = lanes.poisson, lanes.mean, lanes.more, lanes.term
    k, n = len(poisson) - 1, len(mean)
    for m in range(1, k + 1):
        before, row, part = poisson[m - 1], poisson[m], 1.0 / m
        for j in range(n):
            row[j] = before[j] * mean[j] * part
    for j in range(n):
        more[j] = term[j] = poisson[k, j]
    m, going = k, 1
    while going > 0:  # added up where it is small, to keep its digits; more terms change no bit
        m, going, part = m + 1, 0, 1.0 / (m + 1)
        for j in range(n):
            term[j] *= mean[j] * part
            more[j] += term[j]
            going += term[j] > 1e-17 * more[j] and mean[j] < k
    for j in range(n):
        if mean[j] >= k:
            less = 0.0
            for i in range(k):
                less += poisson[i, j]
            more[j] = 1.0 - less


@jit
def _multiply(kernel, x, turned, lanes):
    """Leave K of a row (d,) and of LANES others, turned (d, LANES), in the last row of product."""
    product, stays, share = lanes.product, lanes.stays, kernel.share
    k, n, top = len(share) - 1, turned.shape[1], 0
    product[:] = 0.0
    product[0, :] = kernel.scale
    for f in range(len(x)):
        last = together(kernel, x[f], turned[f], lanes)
        top = min(k, top + last)
        for m in range(1, last + 1):
            row, part = stays[m], share[m]
            for j in range(n):
                row[j] *= part
        for i in range(top, 0, -1):
            total = product[i]
            for m in range(1, min(i, last) + 1):
                before, row = product[i - m], stays[m]
                for j in range(n):
                    total[j] += before[j] * row[j]


@jit
def _turn(others, start, turned):
    """Copy LANES rows, transposed; return how many there are, the last of them repeated."""
    width = min(LANES, len(others) - start)
    for j in range(LANES):
        for f in range(len(turned)):
            turned[f, j] = others[start + min(j, width - 1), f]
    return width


@jit
def fill(kernel, ones, others, begin, end, is_own, out):
    """Write rows ``begin:end`` of the matrix; of its own rows, from the diagonal on, mirrored."""
    k, lanes = len(kernel.share) - 1, _lanes(len(kernel.share))
    turned = np.empty((others.shape[1], LANES), others.dtype)
    for start in range(begin - begin % LANES if is_own else 0, len(others), LANES):
        width = _turn(others, start, turned)
        for i in range(begin, min(end, start + width) if is_own else end):
            _multiply(kernel, ones[i], turned, lanes)
            for j in range(width):
                if not is_own:
                    out[i, start + j] = lanes.product[k, j]
                elif start + j >= i:
                    out[i, start + j] = out[start + j, i] = lanes.product[k, j]


@jit
def add(kernel, rows, fitted, y, begin, end, sums, total):
    """Sum K and K y over all fitted rows, in their order, for rows ``begin:end``."""
    k, lanes = len(kernel.share) - 1, _lanes(len(kernel.share))
    turned = np.empty((fitted.shape[1], LANES), fitted.dtype)
    sums[begin:end] = 0.0
    total[begin:end] = 0.0
    for start in range(0, len(fitted), LANES):
        width = _turn(fitted, start, turned)
        for i in range(begin, end):
            _multiply(kernel, rows[i], turned, lanes)
            for j in range(width):
                weight = lanes.product[k, j]
                total[i] += weight
                for q in range(y.shape[1]):
                    sums[i, q] += weight * y[start + j, q]
