"""Progress elsewhere than on a terminal: few plain lines, whatever the number of parts."""

import io

import pytest

from dforest.cli.progress import Lines, Pace, in_all
from dforest.run.events import Event, listening, progress


def lines_of(total, seconds_each, kept=0):
    """Lines of a pass of equal parts, of which the first ``kept`` were found done."""
    out, seconds = io.StringIO(), 0.0
    lines = Lines(out)
    for done in range(total + 1):
        seconds += seconds_each if done > kept else 0.0
        kind = "step" if done else "begin"
        lines(Event("sweep", kind, done, total, seconds, 0, min(done, kept)))
    lines(Event("sweep", "end", total, total, seconds, 0, kept))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("total", [1, 7, 10, 1000])
def test_lines__are_none_for_a_short_pass(total):
    assert lines_of(total, 0.9 / total) == []


@pytest.mark.parametrize("total", [1, 7, 100, 5000])
def test_lines__are_one_for_some_seconds(total):
    assert len(lines_of(total, 5.0 / total)) == 1
    assert lines_of(total, 5.0 / total)[0].startswith(f"sweep {total}/{total} in 5 s, ")


@pytest.mark.parametrize("total", [10, 1000])
@pytest.mark.parametrize("seconds", [30, 300, 20_000])
def test_lines__are_few_and_end_with_the_last(total, seconds):
    lines = lines_of(total, seconds / total)
    assert 3 <= len(lines) <= 12 + seconds / 60
    assert lines[-1].startswith(f"sweep {total}/{total} in ")


def test_lines__come_once_a_minute_when_a_tenth_takes_hours():
    lines = lines_of(1000, 30.0)
    assert lines[:3] == [
        "sweep 1/1000, 30 s each, 8.3 h left",
        "sweep 3/1000, 30 s each, 8.3 h left",
        "sweep 5/1000, 30 s each, 8.3 h left",
    ]


def test_lines__of_a_real_pass_need_a_second():
    out = io.StringIO()
    with listening(Lines(out)), progress("sweep", 50) as count:
        for _ in range(50):
            count()
    assert out.getvalue() == ""


@pytest.mark.parametrize("kept", [0, 40, 99])
def test_pace__is_that_of_the_parts_that_took_work(kept):
    pace, text = Pace(), ""
    for done in range(kept, 101):
        text = pace(Event("sweep", "step", done, 200, 0.01 + 2.0 * (done - kept), 0, kept))
    assert text == "100/200, 0.5/s, 3 min left"


def test_pace__forgets_a_slow_start_and_names_bytes():
    pace = Pace()
    assert pace(Event("read", "step", 0, 9, 1.0, 0)) == "0/9"
    assert pace(Event("read", "step", 1, 9, 60.0, 10**7)) == "1/9, 59 s each, 8 min left"
    pace(Event("read", "step", 2, 9, 62.0, 2 * 10**7))
    assert pace(Event("read", "step", 4, 9, 66.0, 4 * 10**7)) == "4/9, 0.5/s, 5 MB/s, 10 s left"


def test_in_all__tells_what_was_stopped():
    assert in_all(Event("read", "end", 3, 9, 6000.0, 0)) == "stopped at 3/9 in 1.7 h, 2000 s each"
    assert in_all(Event("read", "end", 9, 9, 0.0, 0, 9)) == "9/9 in 0 s, 9 found done"
