"""Parameters are of the right type and range, or the message says what to give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.arrays import check_choice, check_count, check_fraction_or_count
from dforest.errors import SpecError


@pytest.mark.parametrize("value", [1, np.int64(7), np.uint8(3), 10**12])
def test_check_count__returns_an_int(value):
    count = check_count("k", value)
    assert type(count) is int
    assert count == value


@pytest.mark.parametrize("value", [0, -1, True, np.True_, 2.0, "5", None, [5], float("nan")])
def test_check_count__names_the_parameter_its_value_and_the_limit(value):
    with pytest.raises(SpecError, match=r"^n_trees=.*; give a whole number of at least 1$"):
        check_count("n_trees", value)


def test_check_count__has_an_upper_limit_too():
    assert check_count("k", 0, low=0, high=3) == 0
    with pytest.raises(SpecError, match="k=4 is out of range; give a whole number from 1 to 3"):
        check_count("k", 4, high=3)


@given(count=st.integers(1, 10**6), n=st.integers(1, 10**6))
def test_check_fraction_or_count__a_share_of_n_gives_the_count_back(count, n):
    count = min(count, n)
    assert check_fraction_or_count("m", count / n, n) == count
    assert check_fraction_or_count("m", count, n) == count


def test_check_fraction_or_count__tells_one_from_all():
    assert check_fraction_or_count("m", 1, 30) == 1
    assert check_fraction_or_count("m", 1.0, 30) == 30
    assert check_fraction_or_count("m", np.float32(0.5), 30) == 15
    assert check_fraction_or_count("m", 1e-9, 30) == 1
    assert check_fraction_or_count("m", 0.1, 30) == 3  # 0.1 * 30 > 3 in floating point


@pytest.mark.parametrize("value", [22.0, 1.5, 0, 0.0, -0.5, "5", "0.5", True, np.True_, None])
def test_check_fraction_or_count__refuses_other_types_and_ranges(value):
    with pytest.raises(SpecError, match="^min_samples_leaf="):
        check_fraction_or_count("min_samples_leaf", value, 100)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_check_fraction_or_count__refuses_what_is_not_finite(value):
    with pytest.raises(SpecError, match="is no share in"):
        check_fraction_or_count("m", value, 100)


def test_check_fraction_or_count__keeps_to_the_limits():
    with pytest.raises(SpecError, match="m=11 is out of range; give a whole number from 1 to 10"):
        check_fraction_or_count("m", 11, 10, high=10)
    assert check_fraction_or_count("m", 0.01, 10, low=2) == 2


def test_check_choice__names_all_choices_and_the_nearest():
    assert check_choice("kind", "all", ("all", "some")) == "all"
    assert check_choice("kind", None, (None, "some")) is None
    with pytest.raises(SpecError, match=r"^kind='sum' is unknown; give 'all' or 'some'"):
        check_choice("kind", "sum", ("all", "some"))
    with pytest.raises(SpecError, match="did you mean 'some'"):
        check_choice("kind", "sone", ("all", "some"))


@pytest.mark.parametrize("value", [1, np.array(["all"]), ["all"], None])
def test_check_choice__refuses_other_types(value):
    with pytest.raises(SpecError, match="^kind="):
        check_choice("kind", value, ("all", True))
