"""What a forest keeps of its rows, and how it is taken apart."""

import numpy as np
import pytest
from small_forests import NOTIONS, bags, example, forest_of, points

from dforest.errors import StoreError
from dforest.methods.model import from_arrays, joined_tables, parted_tables, to_arrays


@pytest.mark.parametrize("notion", NOTIONS)
def test_tables__are_parted_as_they_were_joined(notion):
    X = points()
    forest = forest_of(notion, min_samples_leaf=1).fit(X, example(notion, X)[0])._forest
    again = parted_tables(joined_tables(forest.tables), forest.trees)
    for one, other in zip(forest.tables, again, strict=True):
        assert type(one) is type(other)
        for name, a, b in zip(one._fields, one, other):
            np.testing.assert_array_equal(a, b, err_msg=name)
            assert type(a) is type(b)
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None), name


def test_from_arrays__refuses_facts_of_another_recipe():
    X = points()
    arrays, facts = to_arrays(forest_of().fit(X, example("precomputed", X)[0])._forest)
    with pytest.raises(StoreError, match="a stored forest lacks"):
        from_arrays(arrays, facts | {"recipe": facts["recipe"] | {"colour": "red"}})
    with pytest.raises(StoreError, match="a stored forest lacks 'n_rows'"):
        from_arrays(arrays, {k: v for k, v in facts.items() if k != "n_rows"})


@pytest.mark.parametrize("bootstrap", [True, False])
def test_bag__counts_draws_of_rows(bootstrap):
    X = points()
    options = {"bootstrap": bootstrap, "max_samples": 0.5, "pool_size": 20}
    forest = forest_of(**options).fit(X, example("precomputed", X)[0])
    drawn = bags(forest)
    np.testing.assert_array_equal(drawn.sum(axis=1), 10)
    outside = np.setdiff1d(np.arange(40), forest._forest.pool)
    assert drawn[:, outside].sum() == 0
