"""A damaged store reads as it was written, or is one clear error: never other values."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dforest.errors import StoreError
from dforest.store import schema
from dforest.store.describe import check
from faults.disks import DAMAGE, flipped, replaced
from faults.stores import WRITERS, files_of, read_all


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """One store of every format, in its second generation, and what each holds."""
    folder = tmp_path_factory.mktemp("stores")
    for name, write in WRITERS.items():
        write(folder / name, 1)
        write(folder / name, 2)
    return {folder / name: read_all(folder / name) for name in WRITERS}


def check_reading(path, whole, file, generation=None):
    """Fail unless a store with a damaged file reads as it was, or names what is damaged."""
    try:
        found = read_all(path, generation)
    except StoreError as error:
        complaint = str(error)
        assert str(path) in complaint
        assert "\n" not in complaint
        parts = file.relative_to(path).parts  # v2, array, "c", block
        if len(parts) > 3:
            assert f"array {parts[1]!r}, block ({', '.join(parts[3:])}" in complaint
        return complaint
    assert found == whole
    return None


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_one_flipped_bit__is_found_or_changes_nothing(stores, data):
    path = data.draw(st.sampled_from(sorted(stores)))
    file = data.draw(st.sampled_from(files_of(path)))
    with flipped(file, data.draw(st.integers(0, 5_000)), data.draw(st.integers(0, 7))):
        check_reading(path, stores[path], file)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_one_flipped_bit_of_the_root__is_found_or_changes_nothing(stores, data):
    path = data.draw(st.sampled_from(sorted(stores)))
    file = path / schema.POINTER
    with flipped(file, data.draw(st.integers(0, 800)), data.draw(st.integers(0, 7))):
        check_reading(path, stores[path], file)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file__is_named(stores, name, damage):
    path = next(path for path in stores if path.name == name)
    for file in files_of(path):
        with replaced(file):
            DAMAGE[damage](file)
            complaint = check_reading(path, stores[path], file)
        is_read = "v1" not in file.parts
        assert (complaint is not None) == is_read


@pytest.fixture(scope="module")
def replaced_store(tmp_path_factory):
    """A matrix that was written again, and what it held before."""
    path = tmp_path_factory.mktemp("kept") / "matrix"
    WRITERS["matrix"](path, 1)
    whole = read_all(path, "v1")
    WRITERS["matrix"](path, 2)
    return path, whole


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_one_flipped_bit_of_what_was_replaced__is_found_by_those_who_still_read_it(
    replaced_store, data
):
    path, whole = replaced_store
    file = data.draw(st.sampled_from([f for f in files_of(path) if "v1" in f.parts]))
    with flipped(file, data.draw(st.integers(0, 5_000)), data.draw(st.integers(0, 7))):
        check_reading(path, whole, file, "v1")


@pytest.mark.parametrize("name", WRITERS)
def test_a_store_from_a_newer_version__is_neither_read_nor_replaced(tmp_path, name):
    path, file = tmp_path / "store", tmp_path / "store" / schema.POINTER
    WRITERS[name](path, 1)
    text = json.loads(file.read_text())
    text["attributes"]["dforest"] |= {"version": 2, "current": {"since": "version 2"}}
    file.write_text(json.dumps(text))
    before = {file: file.read_bytes() for file in files_of(tmp_path)}
    for use in (read_all, lambda path: WRITERS[name](path, 2)):
        with pytest.raises(StoreError, match="store holds .* version 2, .* reads versions 1 to 1"):
            use(path)
    assert {file: file.read_bytes() for file in files_of(tmp_path)} == before


def test_a_block_put_in_the_place_of_another__is_found_by_checking(tmp_path):
    WRITERS["full matrix"](tmp_path / "z", 1)
    blocks = tmp_path / "z/v1/z/c"
    shutil.copy(blocks / "0/1", blocks / "1/0")
    with pytest.raises(StoreError, match="holds other blocks than were published"):
        check(tmp_path / "z")
