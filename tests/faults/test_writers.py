"""A writer that is killed or meets a full disk at any moment: the old store, or the new one.

Whatever happens, the next writer makes what an undisturbed one makes, and leaves nothing beside it.
"""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dforest.errors import LockedError, RunError
from dforest.store import schema
from dforest.store.describe import check
from dforest.store.matrix import MatrixStore, MatrixWriter
from dforest.store.receipts import Receipts
from dforest.store.scratch import Scratch
from faults import stores
from faults.disks import DAMAGE, flipped, small_disk, small_files
from faults.moments import full_at, n_moments, snapshots, watching
from faults.stores import WRITERS, files_of, matrix_of, read_all

WORK = {  # what stood there before, what is written
    "first matrix": (None, stores.write_full_matrix),
    "next matrix": (stores.write_matrix, stores.write_matrix),
    "first dataset": (None, stores.write_dataset),
    "updated dataset": (stores.write_dataset, stores.update_dataset),
    "next graph": (stores.write_links, stores.write_links),
    "next model": (stores.write_model, stores.write_model),
}
STRIDE = 5  # of moments that are tried, where each costs a write of its own


class Story:
    """One piece of `WORK`: the folder before it, and what an undisturbed writer makes of it."""

    def __init__(self, name, folder):
        before, self.write = WORK[name]
        self.start, done = folder / "start", folder / "done"
        self.start.mkdir()
        if before:
            before(self.start / "store", 1)
        self.old = self.read(self.start)
        shutil.copytree(self.start, done)
        self.write(done / "store", 2)
        self.new, self.entries = self.read(done), sorted(os.listdir(done / "store"))

    def read(self, folder):
        """What the store in a folder holds, all of it; None if there is no store."""
        if not (folder / "store").exists():
            return None
        check(folder / "store")
        return read_all(folder / "store")

    def check_after(self, folder):
        """Fail unless the folder holds the old or the new store, and the work can be done."""
        found = self.read(folder)
        assert found in (self.old, self.new)
        if found != self.new:
            self.write(folder / "store", 2)
            assert self.read(folder) == self.new
            assert os.listdir(folder) == ["store"]
            assert sorted(os.listdir(folder / "store")) == self.entries


@pytest.fixture
def story(request, tmp_path):
    return Story(request.param, tmp_path)


every_story = pytest.mark.parametrize("story", WORK, indirect=True)


@every_story
def test_a_writer_killed_at_any_moment__leaves_the_old_store_or_the_new_one(story, tmp_path):
    shutil.copytree(story.start, tmp_path / "run")
    (tmp_path / "copies").mkdir()
    write = lambda: story.write(tmp_path / "run/store", 2)  # noqa: E731
    copies = snapshots(tmp_path / "run", tmp_path / "copies", write)
    assert len(copies) > 30
    is_taken_up = story.write is stores.write_full_matrix  # each of its moments matters
    for folder in copies if is_taken_up else copies[:-12:STRIDE] + copies[-12:]:
        story.check_after(folder)


@every_story
def test_a_disk_full_at_any_moment__is_one_error_and_the_old_store_stays(story, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(story.start, folder)
    moments = n_moments(folder, lambda: story.write(folder / "store", 2))
    for moment in range(0, moments, STRIDE):
        shutil.rmtree(folder)
        shutil.copytree(story.start, folder)
        complaint = ""
        try:
            with full_at(moment, folder):
                story.write(folder / "store", 2)
        except RunError as error:
            complaint = str(error)
        if complaint:  # a refused lock file's folder, or the like, may not matter
            assert f"cannot write {folder / 'store'}" in complaint
            assert "No space left on device; mend that and run again" in complaint
            assert os.listdir(folder) in ([], ["store"])
        story.check_after(folder)


LARGE = np.random.default_rng(0).random((64, 64), dtype=np.float32)
LARGE += LARGE.T


def write_large(path, tile=32):
    with MatrixWriter(path, 64, tile) as writer:
        for a, b in writer.tiles():
            writer.write_tile(a, b, LARGE[writer.span(a, b)])
        writer.publish()


def few_bytes(folder, n_bytes):
    return small_files(n_bytes)


@pytest.mark.parametrize(
    ("small", "n_bytes"),
    [
        *((few_bytes, n) for n in (0, 100, 1_000, 3_000)),
        *((small_disk, n << 12) for n in (1, 4, 8)),
    ],
)
def test_a_small_disk__is_one_error_that_names_the_store(tmp_path, small, n_bytes):
    folder = tmp_path / "disk"
    folder.mkdir()
    with small(folder, n_bytes), pytest.raises(RunError, match=r"cannot write .*disk/z.*; mend"):
        write_large(folder / "z")
    assert not (folder / "z").exists()
    write_large(folder / "z")
    np.testing.assert_array_equal(MatrixStore(folder / "z")[:, :], LARGE)


@pytest.mark.parametrize("small", [few_bytes, small_disk])
def test_a_small_disk__is_one_error_for_scratch_and_receipts_too(tmp_path, small):
    folder = tmp_path / "disk"
    folder.mkdir()
    with small(folder, 1 << 13):
        with pytest.raises(RunError, match="cannot write .*disk/pool: "):
            Scratch.save(folder / "pool", {"z": LARGE})
        with pytest.raises(RunError, match=r"cannot write .*disk/kept/grow-trees-000000\.npz: "):
            Receipts(folder / "kept", "work").write("grow-trees-000000", {"z": LARGE})
        assert files_of(folder) == []


@pytest.mark.parametrize("name", WRITERS)
def test_a_second_writer__is_locked_out_and_the_first_is_undisturbed(tmp_path, name):
    write = WRITERS[name]
    wanted = write(tmp_path / "alone", 1)
    (tmp_path / "both").mkdir()
    refused = []

    def write_as_well(event, args):
        with pytest.raises(LockedError, match="both/store is being written by process") as caught:
            write(tmp_path / "both/store", 2)
        refused.append(caught.value.exit_code)

    with watching(tmp_path / "both/.store.staging-", write_as_well):
        write(tmp_path / "both/store", 1)
    assert set(refused) == {3}
    assert schema.fingerprint(tmp_path / "both/store") == wanted


# Taking up the work of a killed writer ----------------------------------------------------------


@pytest.fixture(scope="module")
def half_done(tmp_path_factory):
    """Folder that a writer of `write_full_matrix` left when it was killed after four tiles."""
    folder = tmp_path_factory.mktemp("half")
    z = matrix_of(2)
    writer = MatrixWriter(folder / "z", 5, 2, "full", ids=[f"row {k}" for k in range(5)],
                          resume="seed 2")  # fmt: skip
    for a, b in writer.missing()[:4]:
        writer.write_tile(a, b, z[writer.span(a, b)])
    writer.close(keep=True)
    return folder


def take_up(half_done, folder, spoil):
    """Copy, spoil one file and write on: the fingerprint."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(half_done, folder)
    spoil(folder)
    return stores.write_full_matrix(folder / "z", 2)


def test_resuming__does_only_what_is_missing(half_done, tmp_path):
    shutil.copytree(half_done, tmp_path / "run")
    names = [f"row {k}" for k in range(5)]
    with MatrixWriter(tmp_path / "run/z", 5, 2, "full", ids=names, resume="seed 2") as writer:
        assert writer.missing() == [(1, 2), (2, 2)]
    with MatrixWriter(tmp_path / "run/z", 5, 2, "full", resume="seed 2") as writer:
        assert len(writer.missing()) == 6  # a matrix of rows with other names, or none


@pytest.mark.parametrize("damage", DAMAGE)
def test_resuming__writes_damaged_tiles_and_receipts_again(half_done, tmp_path, damage):
    wanted = stores.write_full_matrix(tmp_path / "z", 2)
    for name in [str(file.relative_to(half_done)) for file in files_of(half_done)]:
        if name.endswith(".lock"):
            continue
        found = take_up(half_done, tmp_path / "run", lambda f: DAMAGE[damage](f / name))  # noqa: B023
        assert found == wanted
        check(tmp_path / "run/z")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_resuming__finds_one_flipped_bit(half_done, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    name = data.draw(st.sampled_from([str(f.relative_to(half_done)) for f in files_of(half_done)]))
    byte, bit = data.draw(st.integers(0, 2_000)), data.draw(st.integers(0, 7))

    def spoil(folder):
        with flipped(folder / name, byte, bit):
            wrong = (folder / name).read_bytes()
        (folder / name).write_bytes(wrong)

    wanted = stores.write_full_matrix(folder / "z", 2)
    assert take_up(half_done, folder / "run", spoil) == wanted
    check(folder / "run/z")
    shutil.rmtree(folder)


KILLED = """
import os, signal, sys
from faults.stores import write_full_matrix
replaced, renames = os.replace, 0

def die(source, target):
    global renames
    renames += 1
    if renames == int(sys.argv[2]):
        os.truncate(source, os.path.getsize(source) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    return replaced(source, target)

os.replace = die
write_full_matrix(sys.argv[1], 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_renames", [7, 12])  # in mid-tile; at a receipt
def test_a_writer_that_is_really_killed__can_be_resumed_at_once(tmp_path, n_renames):
    wanted = stores.write_full_matrix(tmp_path / "alone", 2)
    (tmp_path / "run").mkdir()
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run/z"), str(n_renames)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path / "run") if name.endswith(".lock")]
    assert stores.write_full_matrix(tmp_path / "run/z", 2) == wanted
    assert os.listdir(tmp_path / "run") == ["z"]
