"""A bundle: named arrays and a few facts, whole or absent. Every model is one."""

import numpy as np

from dforest.errors import DataError, StoreError
from dforest.store import schema
from dforest.store.staging import Staging

BLOCK_BYTES = 16 * 2**20  # an array longer than this is stored in several blocks of whole rows


def save_bundle(path, format: str, arrays: dict[str, np.ndarray], facts: dict) -> None:
    """Write a model's arrays and facts as one store.

    A bundle of the same format at ``path`` is replaced in one atomic step; anything else there is
    left alone.

    Parameters
    ----------
    path : path-like
    format : str
        What the arrays mean, such as ``"forest"``.
    arrays : dict of str to ndarray
        Numbers, booleans or strings, of any shape.
    facts : dict
        What JSON can say: parameters, names, counts.

    Raises
    ------
    StoreError
        If ``path`` holds something that is not such a bundle.
    DataError
        If an array holds Python objects other than strings.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model"
    >>> save_bundle(path, "forest", {"threshold": np.array([0.5, np.nan])}, {"n_estimators": 1})
    >>> load_bundle(path, "forest")
    ({'threshold': array([0.5, nan])}, {'n_estimators': 1})
    """
    with Staging(path, format) as staging:
        for name, array in arrays.items():
            _store(staging.group, name, np.asarray(array))
        staging.publish(arrays=list(arrays), facts=facts)


def load_bundle(path, format: str | None = None) -> tuple[dict[str, np.ndarray], dict]:
    """Read a bundle back as (arrays, facts); strings come back as fixed-width numpy strings.

    Raises
    ------
    StoreError
        If ``path`` is no bundle of this format, or any part of it is missing or damaged.
    """
    group = schema.open_group(path, format)
    said = schema.facts(group)
    if "arrays" not in said:
        raise StoreError(f"{path} holds a {said['format']}, which is not a bundle of arrays")
    read = {name: schema.read(schema.member(group, name)) for name in said["arrays"]}
    return {name: _as_numpy(array) for name, array in read.items()}, said["facts"]


def _store(group, name: str, array: np.ndarray) -> None:
    if array.dtype.kind == "O":
        if not all(isinstance(item, str) for item in array.flat):
            raise DataError(
                f"array {name!r} holds Python objects; only numbers and strings are kept"
            )
        array = array.astype(np.dtypes.StringDType())
    elif array.dtype.kind == "U":
        array = array.astype(np.dtypes.StringDType())
    row_bytes = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    rows = max(1, min(len(array) if array.ndim else 1, BLOCK_BYTES // max(1, row_bytes)))
    chunks = (rows, *array.shape[1:]) if array.ndim else ()
    target = schema.create_array(group, name, array.shape, array.dtype, chunks)
    if array.ndim == 0:
        schema.write_block(target, (), array)
    elif array.size:
        for block, start in enumerate(range(0, len(array), rows)):
            at = (block, *[0] * (array.ndim - 1))
            schema.write_block(target, at, array[start : start + rows])


def _as_numpy(array: np.ndarray) -> np.ndarray:
    return schema.as_text(array) if array.dtype.kind == "T" else array
