"""Checks of parameters: a number of something, a share of something, one of some words."""

import difflib
import numbers
from collections.abc import Iterable
from typing import Any

from dforest.errors import SpecError


def check_count(name: str, value: Any, low: int = 1, high: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number within [low, high]; SpecError if not.

    >>> check_count("n_estimators", 100)
    100
    >>> check_count("n_estimators", "100")
    Traceback (most recent call last):
    dforest.errors.SpecError: n_estimators='100' is a str; give a whole number of at least 1
    """
    limit = f"of at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise SpecError(f"{name}={value!r} is a {_kind(value)}; give a whole number {limit}")
    count = int(value)
    if count < low or (high is not None and count > high):
        raise SpecError(f"{name}={count} is out of range; give a whole number {limit}")
    return count


def check_fraction_or_count(
    name: str, value: Any, n: int, *, low: int = 1, high: int | None = None
) -> int:
    """Return how many of ``n`` things ``value`` asks for.

    Parameters
    ----------
    value : int or float
        A whole number within [low, high] is the count itself, also a count beyond ``n`` unless
        ``high`` forbids it. A float in (0, 1] is a share of ``n``: the nearest count, not below
        ``low``. So 1 is one thing, and 1.0 is all.

    Raises
    ------
    SpecError
        Any other number or type; bools and numeric texts are refused too.

    Examples
    --------
    >>> [check_fraction_or_count("max_samples", value, 200) for value in (50, 0.5, 1.0)]
    [50, 100, 200]
    >>> check_fraction_or_count("min_samples_leaf", 22.0, 200)
    Traceback (most recent call last):
    dforest.errors.SpecError: min_samples_leaf=22.0 is no share in (0, 1]; ... give 22 for a count
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        way_out = f"give a whole number of at least {low} or a float in (0, 1]"
        raise SpecError(f"{name}={value!r} is a {_kind(value)}; {way_out}")
    if isinstance(value, numbers.Integral):
        return check_count(name, value, low, high)
    share = float(value)
    if not 0.0 < share <= 1.0:
        hint = (
            f"give {share:.0f} for a count" if low <= share < 1e15 else f"a count is at least {low}"
        )
        raise SpecError(
            f"{name}={share!r} is no share in (0, 1]; a float is a share of {n}, {hint}"
        )
    return max(low, round(share * n))


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return ``value`` if it is one of ``choices``; SpecError with the nearest one if not.

    >>> check_choice("leaf_rows", "out_of_bags", ("in_bag", "out_of_bag", "all"))
    Traceback (most recent call last):
    dforest.errors.SpecError: leaf_rows='out_of_bags' is unknown; give 'in_bag', 'out_of_bag' or
    'all' (did you mean 'out_of_bag'?)
    """
    choices = list(choices)
    if any(
        value is choice or (type(value) is type(choice) and value == choice) for choice in choices
    ):
        return value
    words = [repr(choice) for choice in choices]
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise SpecError(f"{name}={value!r} is unknown; give {listed}{hint}")


def _kind(value: Any) -> str:
    return type(value).__name__
