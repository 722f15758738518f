"""Models on disk: every kind of table, whole or refused."""

import json

import numpy as np
import pandas as pd
import pytest
from small_forests import NOTIONS, bits, example, forest_of, plane, points

from dforest import DistanceForest, load
from dforest.errors import StoreError
from dforest.estimators.saving import MODELS
from dforest.store.bundle import save_bundle


@pytest.mark.parametrize("notion", NOTIONS)
def test_load__gives_back_what_was_saved(notion, tmp_path):
    X = points()
    forest = forest_of(notion, weighting="kernel", leaf_rows="out_of_bag", min_samples_leaf=1)
    forest.fit(X, example(notion, X)[0]).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, DistanceForest)
    assert loaded.get_params() == forest.get_params()
    assert bits(loaded) == bits(forest)
    for ask in (lambda f: f.pairwise(X), lambda f: f.oob_pairwise(), lambda f: f.paired(X, X[::-1]),
                lambda f: f.kneighbors(X)[1], lambda f: f.feature_importances_):  # fmt: skip
        np.testing.assert_array_equal(ask(loaded), ask(forest))


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 20},
        {"projections": "sparse", "distance": "half_squared"},
        {"table_budget": 400},
        {"max_leaf_nodes": 4},
        {"max_features": np.int64(2), "max_samples": np.float64(0.5)},
    ],
    ids=lambda options: "-".join(options),
)
def test_load__keeps_every_choice(options, tmp_path):
    X = points()
    notion = options.pop("distance", "precomputed")
    forest = forest_of(notion, **options).fit(X, example(notion, X)[0])
    forest.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == forest.get_params()
    assert bits(loaded) == bits(forest)
    np.testing.assert_array_equal(loaded.oob_pairwise(), forest.oob_pairwise())


def test_load__knows_names_and_can_refit_and_grow_on(tmp_path):
    X = pd.DataFrame(points(), columns=list("abc"))
    z = example("precomputed", points())[0]
    forest = forest_of(warm_start=True, n_estimators=3).fit(X, z)
    forest.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    again = [f.set_params(n_estimators=6).fit(X, z) for f in (forest, loaded)]
    assert bits(again[0]) == bits(again[1])
    refitted = [f.refit_leaves(X, z, leaf_rows="all").pairwise(X) for f in again]
    np.testing.assert_array_equal(*refitted)


def test_save__keeps_a_refit_of_another_kind(tmp_path):
    X = points()
    forest = forest_of("half_squared").fit(X, X[:, :2])
    forest.refit_leaves(X, example("graph", X)[0]).save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").pairwise(X), forest.pairwise(X))


def test_save__replaces_a_model_and_nothing_else(tmp_path):
    X, z = plane()
    forest = forest_of().fit(X, z)
    forest.save(tmp_path / "model")
    forest.set_params(n_estimators=2).fit(X, z).save(tmp_path / "model")
    assert len(load(tmp_path / "model").n_leaves_) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="mine"):
        forest.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_save__has_no_pickle(tmp_path):
    X, z = plane()
    forest_of(random_state=np.random.default_rng(0)).fit(X, z).save(tmp_path / "model")
    for file in (tmp_path / "model").rglob("*.json"):
        json.loads(file.read_text())
    assert load(tmp_path / "model").random_state is None  # a generator is no number to keep
    assert not list((tmp_path / "model").rglob("*.pkl"))


def test_load__names_a_class_that_is_not_known(tmp_path):
    save_bundle(tmp_path / "model", "forest", {"x": np.zeros(1)}, {"class": "Oracle"})
    with pytest.raises(StoreError, match="'Oracle', which this dforest does not know; it knows"):
        load(tmp_path / "model")
    assert "DistanceForest" in MODELS


def test_load__of_a_forest_that_lacks_an_array_says_so(tmp_path):
    X, z = plane()
    forest = forest_of().fit(X, z)
    arrays, facts = forest.to_arrays()
    del arrays["leaves"]
    said = {"class": "DistanceForest", "parameters": {}, "model": facts}
    save_bundle(tmp_path / "model", "forest", arrays, said)
    with pytest.raises(StoreError, match="lacks 'leaves'"):
        load(tmp_path / "model")


def test_load__of_nothing_names_the_path(tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        load(tmp_path / "nowhere")
