"""A store is whole or absent, whenever its writer is killed."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dforest.errors import LockedError, RunError, StoreError
from dforest.store import schema
from dforest.store.bundle import load_bundle, save_bundle
from dforest.store.staging import Staging


def write(path, value, format="forest"):
    save_bundle(path, format, {"x": np.full(3, value)}, {"value": value})


def value_of(path):
    arrays, facts = load_bundle(path)
    assert (arrays["x"] == facts["value"]).all()
    return facts["value"]


def test_publish__appears_whole_and_leaves_nothing_beside_it(tmp_path):
    with Staging(tmp_path / "m", "forest") as staging:
        assert not (tmp_path / "m").exists()
        staging.publish(arrays=[], facts={})
    assert os.listdir(tmp_path) == ["m"]


def test_an_error__leaves_the_old_store_and_no_litter(tmp_path):
    write(tmp_path / "m", 1)
    with pytest.raises(ZeroDivisionError), Staging(tmp_path / "m", "forest"):
        _ = 1 / 0
    assert os.listdir(tmp_path) == ["m"]
    assert value_of(tmp_path / "m") == 1


def test_publishing_again__replaces_and_keeps_one_generation_for_readers(tmp_path):
    path = tmp_path / "m"
    write(path, 1)
    reader = schema.open_group(path)
    write(path, 2)
    assert value_of(path) == 2
    np.testing.assert_array_equal(schema.read(schema.member(reader, "x")), 1)  # as it was opened
    write(path, 3)
    assert sorted(os.listdir(path)) == ["v2", "v3", "zarr.json"]
    with pytest.raises(StoreError, match="'x' is missing"):
        schema.read(schema.member(reader, "x"))
    with pytest.raises(StoreError, match="written again since .now v3.; open it again"):
        schema.open_group(path, generation="v1")


def test_staging__refuses_to_replace_what_is_not_its_own(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mine.txt").write_text("dear")
    with pytest.raises(StoreError, match="not a dforest store"):
        write(tmp_path / "letters", 1)
    assert (tmp_path / "letters" / "mine.txt").read_text() == "dear"
    write(tmp_path / "m", 1)
    with pytest.raises(StoreError, match="holds a forest and is not overwritten by a landmarks"):
        write(tmp_path / "m", 2, format="landmarks")
    assert sorted(os.listdir(tmp_path)) == ["letters", "m"]  # no lock, no staging is left


def test_an_empty_folder__may_become_a_store(tmp_path):
    (tmp_path / "m").mkdir()
    write(tmp_path / "m", 1)
    assert value_of(tmp_path / "m") == 1


def test_two_writers__cannot_hold_one_path(tmp_path):
    with Staging(tmp_path / "m", "forest"), pytest.raises(LockedError, match=str(os.getpid())):
        Staging(tmp_path / "m", "forest")


KILLED = """
import os, signal, sys
from dforest.store import schema, staging

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

path, moment = sys.argv[1:]
if moment == "before":
    staging._flush_tree = die
if moment == "between":
    os.replace = die
with staging.Staging(path, "forest", resume="the work") as s:
    schema.create_array(s.group, "x", (3,), float, (3,))
    s.publish(arrays=[], facts={})
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_killed_writer__changes_nothing_and_the_next_one_cleans_up(tmp_path, moment):
    path = tmp_path / "m"
    write(path, 1)
    done = subprocess.run([sys.executable, "-c", KILLED, path, moment], check=False)
    assert done.returncode == -signal.SIGKILL
    assert value_of(path) == 1
    assert len(os.listdir(tmp_path)) > 1
    write(path, 2)
    assert value_of(path) == 2
    assert os.listdir(tmp_path) == ["m"]
    assert sorted(os.listdir(path)) == ["v1", "v2", "zarr.json"]


def test_resume__takes_up_the_same_work_only(tmp_path):
    for work, expected in [("a", False), ("a", True), ("b", False), ("a", False)]:
        staging = Staging(tmp_path / "m", "matrix", resume=work)
        assert staging.resumed == expected
        if not expected:
            staging.begun()
        staging.close(keep=True)  # as when it is killed
    assert len([name for name in os.listdir(tmp_path) if "staging" in name]) == 2  # and its notes


def test_fingerprint__follows_the_content(tmp_path):
    for name, value in [("a", 1), ("b", 1), ("c", 2)]:
        write(tmp_path / name, value)
    a, b, c = (schema.fingerprint(tmp_path / name) for name in "abc")
    assert a == b != c


def test_a_full_disk__is_a_run_error_and_the_old_store_stays(tmp_path, monkeypatch):
    write(tmp_path / "m", 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dforest.store.staging._flush_tree", full)
    with pytest.raises(RunError, match="cannot write .*/m: No space left on device"):
        write(tmp_path / "m", 2)
    assert value_of(tmp_path / "m") == 1
    assert os.listdir(tmp_path) == ["m"]


def test_a_path_that_cannot_be__is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot write .*file/m: "):
        write(tmp_path / "file" / "m", 1)
