"""Stores that are foreign, newer, or damaged are refused by name; nothing reads as fill values."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema
from dforest.store.staging import Staging

VALUES = np.arange(70, dtype=np.float32).reshape(7, 10)


@pytest.fixture
def store(tmp_path):
    """A store with one array z (7, 10) in blocks of (3, 4)."""
    path = tmp_path / "store"
    with Staging(path, "matrix") as staging:
        z = schema.create_array(staging.group, "z", VALUES.shape, "f4", (3, 4))
        for a in range(3):
            for b in range(3):
                part = VALUES[3 * a : 3 * a + 3, 4 * b : 4 * b + 4]
                schema.write_block(z, (a, b), part)
        staging.publish()
    return path


def array_of(path):
    return schema.member(schema.open_group(path, "matrix"), "z")


def block_of(path, a, b):
    return path / "v1" / "z" / "c" / str(a) / str(b)


@pytest.mark.parametrize(
    ("selection", "same"),
    [
        (..., np.s_[:, :]),
        (slice(2, 5), np.s_[2:5]),
        ((slice(None), slice(9, 3)), np.s_[:, 9:3]),
        ((np.array([6, 0, 6]), slice(1, 9)), np.s_[[6, 0, 6], 1:9]),
        ((np.array([0, -1]), np.array([3, 3, 8])), np.ix_([0, -1], [3, 3, 8])),
        ((slice(None, None, 2), slice(None)), np.s_[::2]),
        ((VALUES[:, 0] > 30, 4), np.ix_(VALUES[:, 0] > 30, [4])),
        ((..., slice(0, 1)), np.s_[:, :1]),
        ((np.array([], int),), np.s_[[]]),
    ],
)
def test_read__selects_as_numpy_does(store, selection, same):
    np.testing.assert_array_equal(schema.read(array_of(store), selection), VALUES[same])


def test_read__refuses_rows_that_are_not_there(store):
    with pytest.raises(DataError, match=r"7 is out of range"):
        schema.read(array_of(store), np.array([0, 7]))


def flip_bit(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


FAULTS = {
    "deleted": lambda file: file.unlink(),
    "emptied": lambda file: file.write_bytes(b""),
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:-5]),
    "one byte left": lambda file: file.write_bytes(file.read_bytes()[:1]),
    "one bit flipped": flip_bit,
    "grown": lambda file: file.write_bytes(file.read_bytes() + b"more"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_read__names_path_array_and_block_of_a_damaged_block(store, fault):
    FAULTS[fault](block_of(store, 1, 2))
    array = array_of(store)
    named = rf"{re.escape(str(store))}.*'z', block \(1, 2\) is (missing|empty|damaged)"
    with pytest.raises(StoreError, match=named) as caught:
        schema.read(array)
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match=named):
        schema.read(array, (np.array([4]), np.array([8])))
    assert schema.read(array, slice(0, 3)).shape == (3, 10)  # the other blocks are still good


@pytest.mark.parametrize("fault", ["emptied", "cut short", "one bit flipped", "deleted"])
def test_read__finds_damage_in_shards_too(tmp_path, fault):
    with Staging(tmp_path / "s", "matrix") as staging:
        z = schema.create_array(staging.group, "z", (4, 4), "f4", (1, 1), shards=(2, 2))
        for a in range(2):
            for b in range(2):
                schema.write_block(z, (a, b), np.full((2, 2), np.nan, np.float32))
        staging.publish()
    array = array_of(tmp_path / "s")
    assert np.isnan(schema.read(array)).all()
    FAULTS[fault](block_of(tmp_path / "s", 0, 1))
    with pytest.raises(StoreError, match=r"block \(0, 1\)"):
        schema.read(array)


def test_read__works_from_several_threads(store):
    array = array_of(store)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: schema.read(array, slice(row, row + 2)), range(6)))
    for row, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, VALUES[row : row + 2])


def test_blocks_of_fill_values__are_written_and_read(tmp_path):
    with Staging(tmp_path / "s", "matrix") as staging:
        z = schema.create_array(staging.group, "z", (2, 2), "f4", (2, 2))
        schema.write_block(z, (0, 0), np.full((2, 2), np.nan, np.float32))
        staging.publish()
    assert np.isnan(schema.read(array_of(tmp_path / "s"))).all()


def test_write_block__takes_whole_blocks_only(store):
    array = schema.open_array(store / "v1", "z")
    with pytest.raises(DataError, match=r"block \(0, 0\) has shape \(3, 4\)"):
        schema.write_block(array, (0, 0), VALUES[:2, :4])


def edit_pointer(path, **changes):
    file = path / "zarr.json"
    text = json.loads(file.read_text())
    text["attributes"]["dforest"] |= changes
    file.write_text(json.dumps(text))


def test_open_group__refuses_a_newer_version_naming_both(store):
    edit_pointer(store, version=2)
    with pytest.raises(StoreError, match="format version 2.*reads versions 1 to 1.*upgrade"):
        schema.open_group(store)


def test_open_group__refuses_another_format(store):
    with pytest.raises(StoreError, match="holds a matrix, but a dataset was asked for"):
        schema.open_group(store, "dataset")


def test_open_group__refuses_altered_metadata(store):
    file = store / "v1" / "z" / "zarr.json"
    file.write_text(file.read_text().replace('"float32"', '"float64"'))
    with pytest.raises(StoreError, match="differs from what was published"):
        schema.open_group(store)


@pytest.mark.parametrize("gone", ["v1", "v1/zarr.json", "v1/z"])
def test_open_group__misses_what_was_removed(store, gone):
    (store / gone).rename(store.parent / "aside")
    with pytest.raises(StoreError, match=re.escape(str(store / "v1"))):
        schema.open_group(store)


def test_open_group__refuses_what_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        schema.open_group(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file, not a store"):
        schema.open_group(tmp_path / "file")
    with pytest.raises(StoreError, match="not a dforest store"):
        schema.open_group(tmp_path)
    zarr.create_group(str(tmp_path / "foreign"), attributes={"title": "somebody else's"})
    with pytest.raises(StoreError, match="not a dforest store"):
        schema.open_group(tmp_path / "foreign")
    (tmp_path / "foreign" / "zarr.json").write_text("{ half")
    with pytest.raises(StoreError, match="not a dforest store"):
        schema.open_group(tmp_path / "foreign")


def test_set_facts__makes_numpy_plain_and_names_what_it_cannot(tmp_path):
    group = schema.create_group(tmp_path / "g", "matrix")
    schema.set_facts(group, {"far": np.float32(0.5), "names": np.array(["a"]), "none": np.nan})
    again = schema.facts(zarr.open_group(str(tmp_path / "g"), mode="r"))
    assert (again["far"], again["names"], again["format"]) == (0.5, ["a"], "matrix")
    assert np.isnan(again["none"])
    with pytest.raises(SpecError, match="'odd' is a object"):
        schema.set_facts(group, {"odd": object()})
