"""Scratch arrays are maps of finished files."""

import numpy as np
import pytest

from dforest.errors import SpecError, StoreError
from dforest.store.scratch import Scratch, scratch_folder

ARRAYS = {
    "z": np.arange(12, dtype=np.float32).reshape(3, 4),
    "none": np.empty((0, 3)),
    "one": np.array(2),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where scratch folders are made."""
    monkeypatch.setenv("DFOREST_SCRATCH", str(tmp_path / "home"))
    return tmp_path / "home"


def test_open__maps_what_was_saved_read_only(tmp_path):
    Scratch.save(tmp_path / "pool", ARRAYS)
    maps = Scratch.open(tmp_path / "pool")
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(maps[name], array)
        assert maps[name].dtype == array.dtype
        assert not maps[name].flags.writeable
    assert isinstance(maps["z"], np.memmap)


def test_save__replaces_and_create_fills_in_place(tmp_path):
    Scratch.save(tmp_path / "pool", ARRAYS)
    with Scratch.create(tmp_path / "pool", {"z": ((2, 2), np.float32)}) as maps:
        maps["z"][0] = 1
        maps["z"][1] = 2
    assert Scratch.open(tmp_path / "pool")["z"].tolist() == [[1, 1], [2, 2]]
    assert [entry.name for entry in tmp_path.iterdir()] == ["pool"]


def test_create__that_fails_leaves_the_old_scratch(tmp_path):
    Scratch.save(tmp_path / "pool", ARRAYS)
    with pytest.raises(KeyError), Scratch.create(tmp_path / "pool", {"z": ((2,), int)}) as maps:
        maps["y"][0] = 1
    assert Scratch.open(tmp_path / "pool")["z"].shape == (3, 4)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pool"]


def test_open__refuses_what_is_unfinished_or_cut_short(tmp_path):
    with pytest.raises(StoreError, match="no finished scratch folder"):
        Scratch.open(tmp_path / "pool")
    Scratch.save(tmp_path / "pool", ARRAYS)
    file = tmp_path / "pool" / "z.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match="175 bytes instead of 176"):
        Scratch.open(tmp_path / "pool")
    file.unlink()
    with pytest.raises(StoreError, match="z.npy"):
        Scratch.open(tmp_path / "pool")


def test_save__leaves_other_folders_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("dear")
    with pytest.raises(StoreError, match="holds something else"):
        Scratch.save(tmp_path, ARRAYS)
    with pytest.raises(SpecError, match="'a/b'"):
        Scratch.save(tmp_path / "pool", {"a/b": np.zeros(1)})


def test_save__links_whole_maps_and_copies_parts(tmp_path):
    z = np.arange(12.0).reshape(3, 4)
    Scratch.save(tmp_path / "one", {"z": z, "none": np.empty(0)})
    maps = Scratch.open(tmp_path / "one")
    Scratch.save(
        tmp_path / "two",
        {"same": maps["z"], "part": maps["z"][1:], "turned": maps["z"].T, "none": maps["none"]},
    )
    found = Scratch.open(tmp_path / "two")
    assert (tmp_path / "two/same.npy").samefile(tmp_path / "one/z.npy")
    for name, wanted in {"same": z, "part": z[1:], "turned": z.T, "none": np.empty(0)}.items():
        np.testing.assert_array_equal(found[name], wanted)
    assert (tmp_path / "one/z.npy").stat().st_nlink == 2  # no other file of it


def test_create__that_cannot_begin_leaves_nothing(tmp_path):
    with pytest.raises(StoreError, match="cannot write .*/pool: "):
        Scratch.create(tmp_path / "pool", {}, {"z": tmp_path / "missing.npy"}).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_scratch_folder__is_removed_at_the_end_and_after_an_error(home):
    with scratch_folder() as folder, scratch_folder() as other:
        assert folder.parent == other.parent == home
        Scratch.save(folder / "pool", ARRAYS)
    assert list(home.iterdir()) == []
    with pytest.raises(ZeroDivisionError), scratch_folder():
        _ = 1 / 0
    assert list(home.iterdir()) == []


def test_scratch_folder__removes_what_killed_processes_left_but_nothing_else(home):
    with scratch_folder() as folder:
        dead, foreign = folder.with_name(folder.name[:-3] + "abc"), home / "dforest-else-where"
        for left in (dead, foreign):
            Scratch.save(left / "pool", ARRAYS)
        with scratch_folder():
            assert folder.exists()
            assert foreign.exists()
            assert not dead.exists()
