"""A model on disk is whole or absent, and comes back as it was."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import bundle
from dforest.store.bundle import load_bundle, save_bundle
from dforest.store.dataset import DatasetWriter

DTYPES = st.one_of(
    hnp.floating_dtypes(endianness="="), hnp.integer_dtypes(endianness="="), hnp.boolean_dtypes()
).filter(lambda dtype: dtype.itemsize <= 8)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(array=hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays__come_back_bit_for_bit(tmp_path, array):
    save_bundle(tmp_path / "m", "forest", {"a": array}, {})
    again = load_bundle(tmp_path / "m", "forest")[0]["a"]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(again, array)


def test_strings_and_facts__come_back(tmp_path):
    arrays = {
        "classes": np.array(["setosa", "", "ä"]),
        "names": np.array(["x", "yy"], dtype=object),
        "none": np.array([], dtype="U5"),
    }
    facts = {"params": {"max_depth": None, "alpha": 0.1, "seed": 7}, "nan": float("nan")}
    save_bundle(tmp_path / "m", "forest", arrays, facts)
    again, said = load_bundle(tmp_path / "m")
    assert {name: array.tolist() for name, array in again.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    assert again["classes"].dtype == "U6"
    assert said["params"] == facts["params"]
    assert np.isnan(said["nan"])


def test_long_arrays__are_stored_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "BLOCK_BYTES", 100)
    long = np.arange(999.0).reshape(333, 3)
    save_bundle(tmp_path / "m", "forest", {"long": long}, {})
    assert len(list((tmp_path / "m" / "v1" / "long" / "c").iterdir())) == 84
    np.testing.assert_array_equal(load_bundle(tmp_path / "m")[0]["long"], long)


def test_python_objects__are_refused(tmp_path):
    with pytest.raises(DataError, match="'odd' holds Python objects"):
        save_bundle(tmp_path / "m", "forest", {"odd": np.array([{}, "a"], dtype=object)}, {})
    with pytest.raises(SpecError, match="'a/b'"):
        save_bundle(tmp_path / "m", "forest", {"a/b": np.zeros(1)}, {})
    assert not list(tmp_path.iterdir())


def test_load_bundle__refuses_other_stores(tmp_path):
    with DatasetWriter(tmp_path / "d") as writer:
        writer.write(np.eye(2))
        writer.publish()
    with pytest.raises(StoreError, match="holds a dataset, which is not a bundle"):
        load_bundle(tmp_path / "d")


def test_load_bundle__refuses_a_damaged_array(tmp_path):
    save_bundle(tmp_path / "m", "forest", {"x": np.arange(9)}, {})
    (tmp_path / "m" / "v1" / "x" / "c" / "0").unlink()
    with pytest.raises(StoreError, match=r"m/v1: array 'x', block \(0,\) is missing"):
        load_bundle(tmp_path / "m")
