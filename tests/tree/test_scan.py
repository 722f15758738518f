"""The innermost loops over a row of z, against their definitions."""

import numpy as np
import pytest

from dforest.tree.scan import ANY, largest_bits, snap, sum_earlier


@pytest.mark.parametrize("m", [1, 7, 64, 1000])
def test_largest_bits__finds_the_largest_known_size_among_live_columns(m):
    rng = np.random.default_rng(m)
    z = rng.normal(size=(3, m)).astype(np.float32)
    z[1, rng.random(m) < 0.3] = np.nan
    live = np.where(rng.random(m) < 0.7, ANY, 0).astype(np.int32)
    found = np.array([largest_bits(z.view(np.int32), 1, live)], np.int32).view(np.float32)[0]
    assert found == np.nanmax(np.where(live > 0, abs(z[1]), 0.0), initial=0.0)


def test_largest_bits__of_nothing_known_is_zero():
    z = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    assert largest_bits(z.view(np.int32), 0, np.full(3, ANY)) == 0


@pytest.mark.parametrize("m", [1, 7, 64, 1000])
def test_snap__rounds_to_the_grid_weighs_and_fills(m):
    rng = np.random.default_rng(m)
    z, w = rng.normal(size=(2, m)).astype(np.float32), rng.integers(0, 5, m).astype(np.int32)
    z[1, rng.random(m) < 0.3] = np.nan
    out = np.empty(m, np.int32)
    total = snap(z, 1, np.float32(2.0**20), np.float32(0.25), w, False, out)
    known = np.where(np.isnan(z[1]), 0.25, z[1].astype(float))
    np.testing.assert_array_equal(out, w * np.rint(known * 2**20))
    assert total == out.sum(dtype=np.int64)


@pytest.mark.parametrize("m", [1, 7, 64, 1000])
def test_snap__is_the_same_where_nothing_is_weighed_or_unknown(m):
    z = np.random.default_rng(m).normal(size=(1, m)).astype(np.float32)
    w, out, plain = np.ones(m, np.int32), *np.empty((2, m), np.int32)
    scale, fill = np.float32(2.0**20), np.float32(0.0)
    total = snap(z, 0, scale, fill, w, False, out)
    assert snap(z, 0, scale, fill, w, True, plain) == total
    np.testing.assert_array_equal(plain, out)


@pytest.mark.parametrize("m", [1, 7, 64, 1000])
def test_sum_earlier__is_the_masked_sum_and_does_not_overflow(m):
    rng = np.random.default_rng(m)
    row = rng.integers(-(2**30), 2**30, m).astype(np.int32)
    row[: m // 2] = 2**30
    turns = np.stack([rng.permutation(m), rng.permutation(m)]).astype(np.int32)
    for here in (0, 1, m // 2, m):
        expected = row[turns[1] < here].sum(dtype=np.int64)
        assert sum_earlier(row, turns, 1, here) == expected
