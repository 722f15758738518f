"""Streamed answers: the tiles of a store hold what one whole answer holds."""

import numpy as np
import pytest
from small_forests import example, forest_of, points

from dforest.errors import RunError
from dforest.methods import answers, tiles
from dforest.methods.asked import Asked
from dforest.run.here import Here
from dforest.store.matrix import MatrixWriter


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("notion", ["precomputed", "half_squared"])
def test_stream_pairwise__writes_the_upper_tiles_of_a_symmetric_matrix(notion, threads, tmp_path):
    X = points()
    model = forest_of(notion).fit(X, example(notion, X)[0])._forest
    leaves, here = answers.apply(model, X, Here(1)), Here(threads)
    stored = tiles.stream_pairwise(Asked(model, leaves), tmp_path / "z", here, tile=16)
    assert (stored.symmetric, stored.tile) == ("upper", 16)
    whole = answers.pairwise(Asked(model, leaves), here).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))
    asked = Asked(model, leaves[:20], leaves)
    other = tiles.stream_pairwise(asked, tmp_path / "other", here, tile=7)
    np.testing.assert_array_equal(other[:, :], whole[:20].astype(np.float32))
    assert stored.largest == whole.astype(np.float32).max()


@pytest.mark.parametrize("trees", ["both", "either"])
def test_stream_pairwise__marks_pairs_without_a_tree_as_unknown(trees, tmp_path):
    X = points()
    model = forest_of(n_estimators=2).fit(X, example("precomputed", X)[0])._forest
    asked = Asked(model, model.leaves, None, answers.out_of_bag(model, np.arange(40)), trees)
    stored = tiles.stream_pairwise(asked, tmp_path / "z", Here(1), tile=9)
    assert stored.has_unknown
    whole = answers.pairwise(asked, Here(1)).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))


def test_stream_pairwise__takes_up_a_stopped_writer_of_the_same_forest_and_rows(
    tmp_path, monkeypatch
):
    X = points()
    Z = example("precomputed", X)[0]
    asked, other = (
        Asked(model, model.leaves)
        for model in (forest_of(random_state=seed).fit(X, Z)._forest for seed in (0, 1))
    )
    written, most, whole_tile = [], 4, MatrixWriter.write_tile

    def write_tile(writer, a, b, array):
        if len(written) == most:
            raise RunError("stopped")
        written.append((a, b))
        return whole_tile(writer, a, b, array)

    def stream(asked):
        written.clear()
        return tiles.stream_pairwise(asked, tmp_path / "z", Here(1), tile=16)

    monkeypatch.setattr(MatrixWriter, "write_tile", write_tile)
    for work in (asked, other):  # other work begins anew
        with pytest.raises(RunError):
            stream(work)
        assert written == [(0, 0), (0, 1), (0, 2), (1, 1)]
    found = stream(other)[:, :]
    assert written == [(1, 2), (2, 2)]
    np.testing.assert_array_equal(found, answers.pairwise(other, Here(1)).mean.astype(np.float32))
