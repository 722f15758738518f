"""Budgets are kept before anything runs."""

import pytest

from dforest.errors import SpecError
from dforest.jobs.plan import Step, as_plan, check_budget


def step(name, memory):
    return Step(name, lambda work: {}, tasks=2, reads=10, writes=5, memory=memory)


def test_as_plan__counts_what_is_left():
    plan = as_plan([step("a", 100), step("b", 70)], done=["a"])
    totals = [plan[key] for key in ("tasks", "bytes_read", "bytes_written", "memory_per_task")]
    assert totals == [2, 10, 5, 70]


def test_check_budget__refuses_only_what_is_left_and_too_large():
    plan = as_plan([step("a", 100), step("b", 70)], done=["a"])
    check_budget(plan, 70)
    check_budget(plan, None)
    with pytest.raises(SpecError, match="step b: a task would take 70 B, but may take 69 B"):
        check_budget(plan, 69)
