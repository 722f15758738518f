"""Silent unless somebody listens."""

import functools
import threading

import pytest

from dforest.run.events import Event, emit, listening, progress
from dforest.run.here import Here
from run import run_steps
from run.run_steps import Folder, job


@pytest.mark.parametrize("threads", [1, 2])
def test_runner__counts_every_block_once(threads):
    heard = []
    with listening(heard.append):
        parts = list(Here(threads).run(job()))
    assert [event.kind for event in heard] == ["begin", *["step"] * 23, "end"]
    assert [event.done for event in heard] == [0, *range(1, 24), 23]
    assert {(event.name, event.total) for event in heard} == {("add-noise", 23)}
    assert heard[-1].bytes == sum(part["x"].nbytes for part in parts)
    assert sorted(heard, key=lambda event: event.seconds) == heard


@pytest.mark.parametrize("threads", [1, 2])
def test_runner__counts_bytes_that_blocks_move(threads):
    heard = []
    with listening(heard.append):
        list(Here(threads).run(job(bytes_of=lambda block: 1 << block)))
    assert heard[-1].bytes == 2**23 - 1
    assert [event.bytes for event in heard[1:4]] == [1, 3, 7]


@pytest.mark.parametrize("threads", [1, 2])
def test_runner__counts_what_was_kept_apart(tmp_path, threads):
    heard, keep = [], Folder(str(tmp_path))
    list(Here(1).run(job(keep=keep)))
    (tmp_path / "add-noise-000002.json").unlink()  # a group of 3 blocks
    with listening(heard.append):
        list(Here(threads).run(job(keep=keep, bytes_of=lambda block: 7)))
    assert (heard[-1].kind, heard[-1].done, heard[-1].kept, heard[-1].bytes) == ("end", 23, 20, 21)
    assert len(heard) == 2 + len(run_steps.GRID) - 1 + 3


def test_progress__is_ended_by_an_error_too():
    heard = []
    step = functools.partial(run_steps.fail, kind="DataError", fatal=2)
    with listening(heard.append), pytest.raises(ValueError, match="-1 rows"):
        list(Here(1).run(job(step)))
    assert (heard[-1].kind, heard[-1].done) == ("end", 2)


def test_listening__ends_with_its_context_and_nests():
    outer, inner = [], []
    with listening(outer.append):
        with listening(inner.append), progress("a", 1):
            pass
        with progress("b", 1):
            pass
    with progress("c", 1):
        pass
    assert [event.name for event in inner] == ["a", "a"]
    assert [event.name for event in outer] == ["a", "a", "b", "b"]


def test_emit__is_safe_from_many_threads():
    heard, event = [], Event("x", "step", 1, 2, 0.0, 0)

    def work():
        for _ in range(200):
            with listening(lambda event: None):
                emit(event)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with listening(heard.append):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert heard == [event] * 800
