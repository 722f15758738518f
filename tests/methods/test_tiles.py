"""Streamed answers: the tiles of a store hold what one whole answer holds."""

import numpy as np
import pytest
from small_forests import example, forest_of, points

from dforest.methods import answers, tiles
from dforest.run.here import Here


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("notion", ["precomputed", "half_squared"])
def test_stream_pairwise__writes_the_upper_tiles_of_a_symmetric_matrix(notion, threads, tmp_path):
    X = points()
    model = forest_of(notion).fit(X, example(notion, X)[0])._forest
    leaves = answers.apply(model, X, Here(1))
    stored = tiles.stream_pairwise(model, leaves, None, tmp_path / "z", Here(threads), tile=16)
    assert (stored.symmetric, stored.tile) == ("upper", 16)
    whole = answers.pairwise(model, leaves, leaves, Here(1)).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))
    other = tiles.stream_pairwise(model, leaves[:20], leaves, tmp_path / "other", Here(threads))
    np.testing.assert_array_equal(other[:, :], whole[:20].astype(np.float32))
    assert stored.largest == whole.astype(np.float32).max()


def test_stream_pairwise__marks_pairs_without_a_tree_as_unknown(tmp_path):
    X = points()
    model = forest_of().fit(X, example("precomputed", X)[0])._forest
    leaves, outside = model.leaves, answers.out_of_bag(model, np.arange(40))
    votes = (outside, "both")
    stored = tiles.stream_pairwise(model, leaves, None, tmp_path / "z", Here(1), votes)
    assert stored.has_unknown
    whole = answers.pairwise(model, leaves, leaves, Here(1), votes=(outside, *votes)).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))
