"""What a store holds, in plain facts, for ``dforest inspect``."""

import os
import pathlib

import zarr

from dforest.errors import StoreError
from dforest.store import schema
from dforest.store.dataset import Dataset


def describe(path) -> dict:
    """Say what a store of any format holds, reading its facts and few of its arrays.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict
        What JSON can say: ``path``, ``format``, ``version``, ``generation``, ``fingerprint``,
        ``bytes`` on disk (of the current generation), ``arrays`` (name, dtype, shape, blocks, by
        name) and the facts of the format: rows, features, classes with their counts, edges, tiles,
        parameters of a model.

    Raises
    ------
    StoreError
        If it is no store, or is damaged; a writer that is at work or was killed is mentioned.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dforest.store.bundle import save_bundle
    >>> path = tempfile.mkdtemp() + "/model"
    >>> save_bundle(path, "forest", {"threshold": np.zeros(3)}, {"n_estimators": 2})
    >>> said = describe(path)
    >>> said["format"], said["n_estimators"], said["arrays"]["threshold"]["shape"]
    ('forest', 2, [3])
    """
    path = pathlib.Path(path)
    try:
        pointer = schema.read_pointer(path)
    except StoreError as error:
        if _staged(path):
            raise StoreError(f"{error}; a writer has not finished it yet, or was killed") from None
        raise
    group = schema.open_group(path)
    said = schema.facts(group)
    said.pop("arrays", None)
    model = said.pop("facts", {})  # a bundle's own
    plain = {"path": str(path), "generation": pointer["current"]}
    plain |= {"fingerprint": pointer["fingerprint"], "bytes": _bytes(schema.folder_of(group))}
    return {**plain, **said, **_more(path, said), **model, "arrays": _arrays(group)}


def check(path) -> int:
    """Read every block of a store once and return the number of bytes they hold.

    Raises
    ------
    StoreError
        For the first block that is missing or damaged, or if all are sound, but not the ones that
        were published.
    """
    group, total = schema.open_group(path), 0
    for name, array in sorted(group.arrays()):
        for block in schema.blocks(array):
            if not (name == "z" and _is_mirrored(group, block)):
                total += schema.read_block(array, block).nbytes
    if schema.content_digest(schema.folder_of(group)) != schema.fingerprint(path):
        raise StoreError(f"{path} holds other blocks than were published; restore it from a copy")
    return total


def _is_mirrored(group: zarr.Group, block) -> bool:
    """Whether a tile is not stored because its mirror image is."""
    return schema.facts(group).get("symmetric") == "upper" and block[0] > block[1]


def _more(path, said: dict) -> dict:
    """Facts that need a look into the arrays."""
    if said["format"] == "dataset" and said["has_labels"]:
        return {"classes": Dataset(path).class_counts()}
    if said["format"] == "graph":
        pairs = said["n_rows"] * (said["n_rows"] - 1) / 2
        return {"density": said["n_edges"] / pairs if pairs else 0.0}
    return {}


def _arrays(group: zarr.Group) -> dict:
    return {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "block": list(schema.block_shape(array)),
        }
        for name, array in sorted(group.arrays())
    }


def _bytes(folder: pathlib.Path) -> int:
    places = (os.path.join(place, file) for place, _, files in os.walk(folder) for file in files)
    return sum(os.stat(file).st_size for file in places)


def _staged(path: pathlib.Path) -> bool:
    folder, mark = path.parent, f".{path.name}.staging-"
    return folder.is_dir() and any(entry.name.startswith(mark) for entry in folder.iterdir())
