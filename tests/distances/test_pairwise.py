"""Python callables: called once a pair, asymmetric unless declared, blamed by the pair."""

import functools
import pickle

import numpy as np
import pytest

from dforest.distances.pairwise import Called, Named, measure_of
from dforest.errors import DataError, SpecError


def ahead(x, y):
    """How far x is ahead of y: not symmetric."""
    return max(x[0] - y[0], 0)


def square(measure, X, first=0):
    out = np.full((len(X), len(X)), -1.0)
    prepared = measure.prepare(X, first)
    measure.sweep(prepared, prepared, out)
    return out


def counted(function):
    calls = []
    return calls, lambda x, y: calls.append((x[0], y[0])) or function(x, y)


X = np.array([[0.0], [1.0], [3.0]])


def test_a_callable__is_called_once_for_every_ordered_pair():
    calls, function = counted(ahead)
    measure = measure_of(function, n_features=1)
    np.testing.assert_array_equal(square(measure, X), np.maximum(X - X.T, 0))
    assert len(calls) == len(set(calls)) == 9


def test_a_callable_declared_symmetric__is_called_for_one_half():
    calls, function = counted(lambda x, y: abs(x[0] - y[0]) + 1)
    measure = measure_of(function, n_features=1, symmetric="upper")
    np.testing.assert_array_equal(square(measure, X), abs(X - X.T) + 1)  # the diagonal as it is
    assert len(calls) == len({frozenset(pair) for pair in calls}) == 6


@pytest.mark.parametrize("value", [2, True, np.float32(2), np.array([2.0]), np.array(2)])
def test_a_callable__may_return_any_one_number(value):
    found = square(Called(lambda x, y: value), X)
    np.testing.assert_array_equal(found, np.asarray(value, float).item())


def test_a_callable__may_say_that_a_distance_is_unknown():
    assert np.isnan(square(Called(lambda x, y: np.nan), X)).all()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"distance\(A\[5\], A\[6\]\) returned None; a distance is one number"),
        ("1", "returned '1'"),
        (np.ones(2), "returned array"),
        (1j, "returned 1j"),
        (np.inf, r"distance\(A\[5\], A\[6\]\) is infinite"),
    ],
)
def test_an_answer_that_is_no_distance__names_the_pair(answer, message):
    measure = Called(lambda x, y: answer if y[0] == 1 else 0.0)
    with pytest.raises(DataError, match=message):
        square(measure, X, first=5)


def test_an_error_in_a_callable__names_the_pair_and_keeps_its_cause():
    def fail(x, y):
        return 1 / (x[0] - y[0] + 3)

    with pytest.raises(
        DataError, match=r"A\[0\], A\[2\]\) raised ZeroDivis|FloatingPoint"
    ) as caught:
        square(Called(lambda x, y: fail([int(x[0])], [int(y[0])])), X)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_callable__cannot_change_the_rows():
    def spoil(x, y):
        x[0] = 7
        return 0.0

    with pytest.raises(DataError, match="read-only"):
        square(Called(spoil), X.copy())


@pytest.mark.parametrize("distance", [None, 3, ["euclidean"]])
def test_measure_of__takes_names_and_callables_only(distance):
    with pytest.raises(SpecError, match="give a name, a callable"):
        measure_of(distance, n_features=1)


def test_measure_of__leaves_a_callables_options_to_partial():
    with pytest.raises(SpecError, match=r"options p are for named .* functools\.partial"):
        measure_of(ahead, {"p": 2}, n_features=1)


# Fingerprints ------------------------------------------------------------------------------------


def test_fingerprint__of_a_name_says_its_options():
    plain = measure_of("minkowski", n_features=2)
    other = measure_of("minkowski", {"w": [1, 1 + 1e-15]}, n_features=2)
    again = pickle.loads(pickle.dumps(other))
    assert isinstance(again, Named)
    assert again.fingerprint == other.fingerprint != plain.fingerprint


def make(power, constant=1):
    return lambda x, y, more=constant: abs(x[0] - y[0]) ** power + more


def test_fingerprint__of_a_plain_function_is_its_code_and_what_it_holds():
    assert Called(ahead).fingerprint == Called(ahead).fingerprint
    assert Called(make(2)).fingerprint == Called(make(2)).fingerprint
    changed = (make(3), make(2, constant=2), ahead, lambda x, y: 0.0, lambda x, y: 1.0)
    assert len({Called(one).fingerprint for one in (make(2), *changed)}) == 6


@pytest.mark.parametrize("function", [make(np.ones(2)), functools.partial(ahead), np.hypot])
def test_fingerprint__of_anything_else_is_never_the_same(function):
    assert Called(function).fingerprint != Called(function).fingerprint
