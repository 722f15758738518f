"""``run.json``: true while a run goes on, and when it cannot be written."""

import errno
import json
import os

import pytest

from dforest.errors import RunError
from dforest.jobs.record import Record
from dforest.run.events import Event


def test_listen__keeps_counts_and_rates_of_passes(tmp_path):
    record = Record(tmp_path, {})
    record.step = "learn"
    for kind in ("begin", "step", "end"):
        record.listen(Event("read-tiles", kind, 9, 10, 2.0, 500, kept=4))
    assert record.facts["passes"] == [
        {
            "step": "learn",
            "name": "read-tiles",
            "seconds": 2.0,
            "done": 9,
            "kept": 4,
            "total": 10,
            "bytes": 500,
            "bytes_per_second": 250,
        }
    ]


def test_listen__writes_long_passes_down_before_their_step_ends(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    record = Record(tmp_path, {})
    record.write("running")
    for name, at in (("short", 1.0), ("long", 60.0)):
        now[0] = at
        record.listen(Event(name, "end", 1, 1, at, 0))
    stored = json.loads((tmp_path / "run.json").read_text())
    assert [one["name"] for one in stored["passes"]] == ["short", "long"]
    assert (stored["status"], stored["seconds"]) == ("running", 60.0)


def test_write__on_a_full_disk_is_one_line_and_leaves_the_last_record(tmp_path, monkeypatch):
    record = Record(tmp_path, {})
    record.write("running")

    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunError, match=r"run.json: No space left on device; mend that"):
        record.write("finished")
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "running"
