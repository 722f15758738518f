"""Finished parts are found again; anything doubtful is done again."""

import pickle

import numpy as np
import pytest

from dforest.errors import SpecError
from dforest.store.receipts import Receipts

PART = {"sums": np.arange(6.0).reshape(2, 3), "rows": np.array(5), "none": np.empty((0, 4))}


@pytest.fixture
def kept(tmp_path):
    kept = Receipts(tmp_path / "receipts", "work")
    kept.write("grow-000001", PART)
    return kept


def test_read__returns_what_was_written(kept):
    part = pickle.loads(pickle.dumps(kept)).read("grow-000001")
    assert part.keys() == PART.keys()
    for name, array in PART.items():
        np.testing.assert_array_equal(part[name], array)
        assert part[name].dtype == array.dtype
    assert kept.keys() == ["grow-000001"]


def test_read__finds_nothing_of_other_work(kept):
    assert kept.read("grow-000002") is None
    assert Receipts(kept.folder, "other").read("grow-000001") is None
    assert Receipts(kept.folder / "nowhere", "work").read("grow-000001") is None


def test_read__counts_any_damage_as_absent(kept):
    file = kept.folder / "grow-000001.npz"
    whole = file.read_bytes()
    for size in range(0, len(whole), 37):
        file.write_bytes(whole[:size])
        assert kept.read("grow-000001") is None
    for at in range(0, len(whole), 11):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        part = kept.read("grow-000001")  # some bytes of a zip say nothing
        assert part is None or all((part[name] == PART[name]).all() for name in PART)


def test_write__replaces_and_leaves_no_partial_file(kept):
    kept.write("grow-000001", {"sums": np.ones(1)})
    assert kept.read("grow-000001")["sums"] == 1
    assert [file.name for file in kept.folder.iterdir()] == ["grow-000001.npz"]


@pytest.mark.parametrize("key", ["", "../up", "a b", ".hidden"])
def test_keys__are_plain_names(kept, key):
    with pytest.raises(SpecError, match="may hold letters"):
        kept.write(key, PART)


def test_write__refuses_objects(kept):
    with pytest.raises(SpecError, match="'odd'"):
        kept.write("a", {"odd": np.array([{}])})
