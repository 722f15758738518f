"""Budgets are kept before anything runs."""

import pytest

from dforest.errors import SpecError
from dforest.jobs.plan import Budget, Step, as_plan, check_budget
from dforest.run.memory import Room


def step(name, memory):
    return Step(name, lambda work: {}, tasks=2, reads=10, writes=5, memory=memory)


STEPS = [step("a", 100), step("b", 70)]


def budget(per_task, of="the moon", more="buy some"):
    return Budget(Room(3 * per_task, 3), of, more)


def test_as_plan__counts_what_is_left_and_names_the_limit():
    plan = as_plan(STEPS, budget(70), done=["a"])
    totals = [plan[key] for key in ("tasks", "bytes_read", "bytes_written", "memory_per_task")]
    assert totals == [2, 10, 5, 70]
    assert (plan["memory_limit"], plan["memory_limit_of"]) == (70, "the moon")
    assert as_plan(STEPS, budget(70, of=None))["memory_limit"] is None


def test_check_budget__refuses_only_what_is_left_and_too_large():
    check_budget(STEPS, budget(70), done=["a"])
    check_budget(STEPS, budget(1, of=None))
    with pytest.raises(SpecError) as caught:
        check_budget(STEPS, budget(69), done=["a"], smaller="ask for less")
    assert str(caught.value) == (
        "step b: 2 tasks that read 10 B and write 5 B would take 70 B of memory each, but the moon "
        "allows 69 B; ask for less, or buy some"
    )
