"""Do a piece of work while things go wrong, until it succeeds; judge what came of it."""

import collections
import functools
import shutil
import tempfile

import pytest
from hypothesis import strategies as st

from dforest.errors import RunError
from dforest.run.here import Here
from faults.injection import Faults
from faults.work import WORK


@functools.cache
def undisturbed(name):
    """The bits of a piece of work, and how many blocks each of its passes had."""
    folder, seen = tempfile.mkdtemp(), collections.Counter()
    run = Here.run

    def counting(runner, job):
        seen[job.name] = max(seen[job.name], job.n_blocks)
        return run(runner, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Here, "run", counting)
        found = WORK[name].do(folder)
    shutil.rmtree(folder)
    return found, seen


def tables(name, events, n_faults=4):
    """Random tables of faults of a piece of work."""
    places = st.sampled_from(WORK[name].passes).flatmap(
        lambda one: st.tuples(st.just(one), st.integers(0, undisturbed(name)[1][one] - 1))
    )
    happens = st.lists(st.sampled_from(events), min_size=1, max_size=2)
    return st.dictionaries(places, happens, min_size=1, max_size=n_faults)


def check_disturbed(name, table, folder, client=None):
    """Do the work until it succeeds; every failure must be one clear error of ours."""
    (folder / "marks").mkdir()
    (folder / "work").mkdir()
    faults, complaints = Faults(folder / "marks", table), []
    with faults.in_all_passes():
        for _ in range(1 + sum(map(len, table.values()))):
            try:
                found = WORK[name].do(folder / "work", client)
                break
            except RunError as error:
                complaints.append(str(error))
    assert found == undisturbed(name)[0]
    for complaint in complaints:
        assert "\n" not in complaint
        assert any(f"{one}-0" in complaint for one in WORK[name].passes), complaint
        assert "Input/output error" in complaint or "out of memory" in complaint
    shutil.rmtree(folder)
