"""Growing and tabulating: bags, receipts, and fits that are killed and resumed."""

import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from small_forests import NOTIONS, bags, bits, example, forest_of, plane, points

from dforest import cross_validate
from dforest.methods.forest import keeping, max_cells
from dforest.store.receipts import Receipts

TESTS = pathlib.Path(__file__).parents[1]


def receipts(folder):
    """Files of a folder of receipts, and when each was written."""
    return {file: file.stat().st_mtime_ns for file in pathlib.Path(folder).rglob("*.npz")}


@pytest.mark.parametrize("notion", NOTIONS)
def test_trees__depend_on_their_number_and_nothing_else(notion):
    X = points()
    Z = example(notion, X)[0]
    few, many = (forest_of(notion, n_estimators=n).fit(X, Z)._forest for n in (3, 70))
    for one, other in zip(few.trees, many.trees):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other))


def test_bags__are_draws_with_replacement_of_every_row_alike():
    X, z = plane()
    drawn = bags(forest_of(n_estimators=400, max_depth=1).fit(X, z))
    assert len(np.unique(drawn, axis=0)) == 400
    share = (drawn > 0).mean()
    assert share == pytest.approx(1 - (1 - 1 / 40) ** 40, abs=0.01)
    spread = drawn.mean(axis=0) - 1
    assert abs(spread).max() < 5 / np.sqrt(400)


@pytest.mark.parametrize("n_estimators", [1, 7, 500])
def test_max_cells__keeps_all_tables_within_the_budget(n_estimators):
    cells = max_cells(10**6, n_estimators)
    assert n_estimators * 8 * cells * (cells + 1) / 2 <= 10**6
    assert n_estimators * 8 * (cells + 1) * (cells + 2) / 2 > 10**6


def test_max_cells__is_one_where_nothing_fits():
    assert max_cells(1, 500) == 1


def test_keeping__a_finished_fit_is_read_and_not_done_again(tmp_path, monkeypatch):
    X, z = plane()
    kept = Receipts(tmp_path, "job")
    with keeping(kept):
        first = forest_of(n_estimators=40).fit(X, z)
    before = receipts(tmp_path)
    assert len(before) == 2 * 20  # 40 trees in groups of two, grown and tabulated
    monkeypatch.setattr(Receipts, "write", lambda *_: pytest.fail("done again"))
    with keeping(kept):
        second = forest_of(n_estimators=40).fit(X, z)
    assert bits(first) == bits(second)
    assert receipts(tmp_path) == before


OTHERS = {
    "distances": lambda X, z: (forest_of(), X, z * 2),
    "features": lambda X, z: (forest_of(), X + X[::-1], z),
    "seed": lambda X, z: (forest_of(random_state=1), X, z),
    "parameter": lambda X, z: (forest_of(min_samples_leaf=4), X, z),
    "self-pairs": lambda X, z: (forest_of(self_pairs=False), X, z),
    "leaf-rows": lambda X, z: (forest_of(leaf_rows="all"), X, z),
    "pool": lambda X, z: (forest_of(pool_size=20, max_samples=10), X, z),
    "dtype": lambda X, z: (forest_of(), X.astype(np.float32), z),
    "notion": lambda X, z: (forest_of("absolute"), X, z[0]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_keeping__does_not_mix_up_other_work_in_the_folder(what, tmp_path):
    X, z = plane()
    other, *data = OTHERS[what](X, z)
    expected = bits(other.fit(*data))
    with keeping(Receipts(tmp_path, "job")):
        forest_of().fit(X, z)
        assert bits(other.fit(*data)) == expected


def test_keeping__tells_warm_starts_from_fits_at_once(tmp_path):
    X, z = plane()
    expected = bits(forest_of(n_estimators=8).fit(X, z))
    with keeping(Receipts(tmp_path, "job")):
        warm = forest_of(n_estimators=4, warm_start=True).fit(X, z)
        assert bits(warm.set_params(n_estimators=8).fit(X, z)) == expected
        assert bits(forest_of(n_estimators=8).fit(X, z)) == expected


def test_keeping__refits_of_other_trees_are_told_apart(tmp_path):
    X, z = plane()
    one, two = (forest_of().fit(rows, z) for rows in (X, X[::-1]))
    expected = [f.refit_leaves(X, z).pairwise(X) for f in (one, two)]
    with keeping(Receipts(tmp_path, "job")):
        found = [f.refit_leaves(X, z).pairwise(X) for f in (one, two)]
    np.testing.assert_array_equal(found, expected)


def test_keeping__every_fold_of_a_cross_validation_keeps_its_own(tmp_path, monkeypatch):
    X, z = plane()
    with keeping(Receipts(tmp_path, "job")):
        first = cross_validate(forest_of(), X, z, cv=3)
        monkeypatch.setattr(Receipts, "write", lambda *_: pytest.fail("done again"))
        second = cross_validate(forest_of(), X, z, cv=3)
    np.testing.assert_array_equal(first["test_score"], second["test_score"])


def test_keeping__other_fingerprints_and_damaged_receipts_count_as_absent(tmp_path):
    X, z = plane()
    expected = bits(forest_of().fit(X, z))
    with keeping(Receipts(tmp_path, "yesterday")):
        forest_of().fit(X, z)
    before = receipts(tmp_path)
    with keeping(Receipts(tmp_path, "today")):
        assert bits(forest_of().fit(X, z)) == expected
    assert all(time > before[file] for file, time in receipts(tmp_path).items())
    for file in before:
        file.write_bytes(file.read_bytes()[:-40])
    with keeping(Receipts(tmp_path, "today")):
        assert bits(forest_of().fit(X, z)) == expected


KILLED = """
import os, signal, sys
from small_forests import forest_of, plane
from dforest.methods.forest import keeping
from dforest.run.events import listening
from dforest.store.receipts import Receipts

def kill(event):
    if (event.name, event.done) == (sys.argv[2], 9):
        os.kill(os.getpid(), signal.SIGKILL)

X, z = plane()
with listening(kill), keeping(Receipts(sys.argv[1], "job")):
    forest_of(n_estimators=40).fit(X, z)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("where", "finished"), [("grow-trees", 9), ("tabulate-leaves", 29)])
def test_keeping__a_fit_killed_in_the_middle_takes_up_where_it_stopped(where, finished, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path), where]
    env = os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
    ended = subprocess.run(command, env=env, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL
    before = receipts(tmp_path)
    assert len(before) == finished
    X, z = plane()
    with keeping(Receipts(tmp_path, "job")):
        resumed = forest_of(n_estimators=40).fit(X, z)
    assert bits(resumed) == bits(forest_of(n_estimators=40).fit(X, z))
    after = receipts(tmp_path)
    assert len(after) == 40
    assert {file: after[file] for file in before} == before
