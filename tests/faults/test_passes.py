"""Every pass, with faults in its blocks: the undisturbed bits, or one error and then the bits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.injection import ERRORS, Faults
from faults.trials import check_disturbed, tables
from faults.work import WORK


@pytest.mark.parametrize("name", WORK)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_faults_in_this_process__end_in_the_same_bits(name, tmp_path_factory, data):
    table = data.draw(tables(name, [*ERRORS, "sleep"]))
    check_disturbed(name, table, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("name", WORK)
def test_every_pass__is_disturbed(name, tmp_path):
    """The table above would be empty words if a pass had another name."""
    table = {(one, 0): ["sleep"] for one in WORK[name].passes}
    faults = Faults(tmp_path / "marks", table)
    (tmp_path / "marks").mkdir()
    with faults.in_all_passes():
        WORK[name].do(tmp_path)
    assert faults.n_happened() == len(WORK[name].passes)
