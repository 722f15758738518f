"""Streamed answers: the tiles of a store hold what one whole answer holds."""

import json

import numpy as np
import pytest
from small_forests import example, forest_of, points

from dforest.methods import answers, tiles
from dforest.methods.material import digest_of
from dforest.run.here import Here
from dforest.store.scratch import Scratch


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("notion", ["precomputed", "half_squared"])
def test_stream_pairwise__writes_the_upper_tiles_of_a_symmetric_matrix(notion, threads, tmp_path):
    X = points()
    model = forest_of(notion).fit(X, example(notion, X)[0])._forest
    leaves = answers.apply(model, X, Here(1))
    asked = tiles.Asked(model, leaves)
    stored = tiles.stream_pairwise(asked, tmp_path / "z", Here(threads), tile=16)
    assert (stored.symmetric, stored.tile) == ("upper", 16)
    whole = answers.pairwise(model, leaves, leaves, Here(1)).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))
    asked = tiles.Asked(model, leaves[:20], leaves)
    other = tiles.stream_pairwise(asked, tmp_path / "other", Here(threads))
    np.testing.assert_array_equal(other[:, :], whole[:20].astype(np.float32))
    assert stored.largest == whole.astype(np.float32).max()


def test_stream_pairwise__marks_pairs_without_a_tree_as_unknown(tmp_path):
    X = points()
    model = forest_of().fit(X, example("precomputed", X)[0])._forest
    leaves, outside = model.leaves, answers.out_of_bag(model, np.arange(40))
    asked = tiles.Asked(model, leaves, None, outside, "both")
    stored = tiles.stream_pairwise(asked, tmp_path / "z", Here(1))
    assert stored.has_unknown
    whole = answers.pairwise(model, leaves, leaves, Here(1), votes=(outside, outside, "both")).mean
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))


def test_asked__lies_flat_in_a_folder(tmp_path):
    X = points()
    model = forest_of(n_estimators=3).fit(X, example("precomputed", X)[0])._forest
    for asked in (
        tiles.Asked(model, model.leaves),
        tiles.Asked(model, model.leaves[:9], model.leaves),
        tiles.Asked(model, model.leaves, None, answers.out_of_bag(model, np.arange(40)), "either"),
    ):
        arrays, facts = asked.flat()
        Scratch.save(tmp_path / "asked", arrays)
        facts = json.loads(json.dumps(facts))
        again = tiles.Asked.from_flat(Scratch.open(tmp_path / "asked"), facts)
        assert again.shape == asked.shape
        assert digest_of(again) == digest_of(asked)
