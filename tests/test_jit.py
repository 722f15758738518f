"""The door to numba tells when it compiles."""

from dforest.jit import compiling, jit


def test_compiling__is_told_before_a_routine_is_made_and_not_after():
    told = []
    add_one = jit(cache=False)(lambda x: x + 1)
    with compiling(told.append):
        assert add_one(1) == 2
        n_told = len(told)
        assert add_one(2) == 3
    add_one(0.5)  # another type is compiled anew, but nobody listens
    assert 0 < n_told == len(told)
    assert all(isinstance(folder, str) for folder in told)
