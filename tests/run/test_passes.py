"""Work as data: checks at the door, and one order of merging."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.errors import SpecError
from dforest.run.passes import Fold, Pass, row_blocks
from run.run_steps import noise


def pairwise_rounds(parts):
    """Slow twin of `Fold`: merge neighbours, round by round; the odd one waits for the next."""
    while len(parts) > 1:
        parts = [
            f"({''.join(parts[i : i + 2])})" if i + 1 < len(parts) else parts[i]
            for i in range(0, len(parts), 2)
        ]
    return parts[0]


@given(st.integers(1, 70))
def test_fold__merges_neighbours_round_by_round(n):
    asked = []

    def merge(left, right, is_last):
        asked.append(is_last)
        return f"({left}{right})"

    fold = Fold(n, merge)
    parts = [chr(ord("A") + i) for i in range(n)]
    answers = [fold.add(part) for part in parts]
    assert answers[:-1] == [None] * (n - 1)
    assert answers[-1] == pairwise_rounds(parts)
    assert asked == [False] * (n - 2) + [True] * (n > 1)


def test_fold__holds_few_parts():
    fold = Fold(1000, lambda left, right, is_last: left + right)
    for _ in range(999):
        fold.add(1)
        assert len(fold._held) <= 1 + math.log2(1000)
    assert fold.add(1) == 1000


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(150, 5000))
def test_row_blocks__cover_the_rows_once_and_fit(n, row_bytes, budget):
    blocks = row_blocks(n, row_bytes, budget)
    assert [row for block in blocks for row in range(n)[block]] == list(range(n))
    assert all(3 * row_bytes * (block.stop - block.start) <= budget for block in blocks)


def test_row_blocks__refuse_a_budget_below_one_row():
    with pytest.raises(SpecError, match=r"memory per task: 100 bytes, but one row takes 3 x 800"):
        row_blocks(10, row_bytes=800, budget=100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "grow trees"}, "pass name: .* got 'grow trees'"),
        ({"name": "../up"}, "pass name"),
        ({"name": "write-2-pairs"}, "words of letters with dashes, got 'write-2-pairs'"),
        ({"grid": [[1], []]}, "group 1 has no blocks"),
        ({"grid": [[1, 2]]}, "group 0 has 2 blocks and no merge"),
    ],
)
def test_pass__refuses_what_cannot_run(changes, message):
    with pytest.raises(SpecError, match=message):
        Pass(**{"name": "grow-trees", "step": noise, "grid": [[1]], **changes})
