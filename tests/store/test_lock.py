"""One writer at a time; a killed one holds nothing."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from dforest.errors import LockedError, StoreError
from dforest.store.lock import Lock


def test_lock__of_a_root_is_refused():
    with pytest.raises(StoreError, match="cannot be written as a whole; name a folder in it"):
        Lock("/")


def test_lock__names_its_holder_and_is_given_back(tmp_path):
    with Lock(tmp_path / "out"):
        with pytest.raises(LockedError, match=rf"process {os.getpid()} on {socket.gethostname()}"):
            Lock(tmp_path / "out").acquire()
        Lock(tmp_path / "other").acquire().release()
    with Lock(tmp_path / "out"):
        pass
    assert os.listdir(tmp_path) == []


def test_lock__is_one_for_all_names_of_a_path(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with Lock(tmp_path / "real"), pytest.raises(LockedError):
        Lock(tmp_path / "link").acquire()


HOLD = """
import sys, time
from dforest.store.lock import Lock
with Lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_lock__of_a_killed_process_is_free_at_once(tmp_path):
    command = [sys.executable, "-c", HOLD, tmp_path / "out"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=f"process {other.pid} "):
            Lock(tmp_path / "out").acquire()
        other.send_signal(signal.SIGKILL)
        other.wait()
        Lock(tmp_path / "out").acquire().release()
