"""Progress elsewhere than on a terminal: few plain lines, whatever the number of parts."""

import io

import pytest

from dforest.cli.progress import Lines
from dforest.run.events import listening, progress


@pytest.mark.parametrize("total", [1, 7, 10, 1000])
def test_lines__are_at_most_one_for_each_tenth_and_end_with_the_last(total):
    out = io.StringIO()
    with listening(Lines(out)), progress("sweep", total) as count:
        for _ in range(total):
            count()
    lines = out.getvalue().splitlines()
    assert len(lines) <= 10
    assert lines[-1].startswith(f"sweep {total}/{total}")


def test_lines__name_the_rate_the_bytes_and_the_time_left():
    out = io.StringIO()
    lines = Lines(out)
    from dforest.run.events import Event

    lines(Event("read", "begin", 0, 4, 0.0, 0))
    lines(Event("read", "step", 1, 4, 2.0, 10_000_000))
    assert out.getvalue() == "read 1/4, 0.5/s, 5 MB/s, 6 s left\n"


def test_lines__come_after_some_seconds_too(monkeypatch):
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with listening(Lines(out)), progress("slow", 1000) as count:
        for _ in range(3):
            now[0] += 6.0
            count()
    assert out.getvalue().splitlines() == ["slow 2/1000, 0.2/s, 5988 s left"]
