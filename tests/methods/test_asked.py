"""What a task holds of a question, and the memory that a block of answers takes."""

import json
import tracemalloc

import numpy as np
import pytest
from small_forests import example, forest_of, plane, points

from dforest.methods import answers
from dforest.methods.asked import Asked, answer, block_bytes, cut, pair_blocks
from dforest.methods.material import digest_of
from dforest.run.here import Here
from dforest.store.scratch import Scratch


def test_asked__lies_flat_in_a_folder(tmp_path):
    X = points()
    model = forest_of(n_estimators=3).fit(X, example("precomputed", X)[0])._forest
    for asked in (
        Asked(model, model.leaves),
        Asked(model, model.leaves[:9], model.leaves),
        Asked(model, model.leaves, None, answers.out_of_bag(model, np.arange(40)), "either"),
    ):
        arrays, facts = asked.flat()
        Scratch.save(tmp_path / "asked", arrays)
        again = Asked.from_flat(Scratch.open(tmp_path / "asked"), json.loads(json.dumps(facts)))
        assert again.shape == asked.shape
        assert digest_of(again) == digest_of(asked)
        whole = slice(0, asked.shape[0]), slice(0, asked.shape[1])
        np.testing.assert_array_equal(answer(again, *whole).mean, answer(asked, *whole).mean)


@pytest.mark.parametrize(("shape", "same"), [((5, 5), True), ((7, 3), False), ((1, 900), False)])
@pytest.mark.parametrize("threads", [1, 3])
def test_pair_blocks__cover_every_pair_once(shape, same, threads):
    seen = np.zeros(shape, int)
    for rows, columns in pair_blocks(shape, same, Here(threads)):
        seen[rows, columns] += 1
        if same and rows != columns:
            seen[columns, rows] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("with_std", [False, True])
@pytest.mark.parametrize("trees", [None, "both", "either"])
def test_block_bytes__are_more_than_a_block_takes(weighting, with_std, trees):
    X, z = plane(600)
    model = forest_of(weighting=weighting, n_estimators=12, min_samples_leaf=1).fit(X, z)._forest
    outside = None if trees is None else answers.out_of_bag(model, np.arange(600))
    asked = Asked(model, model.leaves, None, outside, trees or "both")
    rows, columns = cut(600, 250)[:2]
    answer(asked, rows, columns, with_std=with_std)  # compiled, and what is made once
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    answer(asked, rows, columns, with_std=with_std)
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    most = max(len(tree.right) // 2 + 1 for tree in model.trees)
    n_layers = (3 if weighting == "kernel" else 1) + with_std
    limit = block_bytes(250, 250, 12, most, n_layers=n_layers, either=trees == "either")
    assert limit / 4 < peak < limit
