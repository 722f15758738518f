"""What every store shares: format and version, checked arrays, strict reads.

A store is a folder. Its root ``zarr.json`` is a pointer: one small file that names the format, its
version and the current generation (``v1``, ``v2``, ...), a zarr group in the same folder that holds
the arrays. Replacing that one file publishes a new generation in one atomic step, and a reader
that opened the old generation goes on reading it undisturbed.
"""

import hashlib
import itertools
import json
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from dforest.errors import DataError, SpecError, StoreError
from dforest.store.disk import reading, writing

VERSION = 1  # of all formats; a store says which one it was written in
POINTER = "zarr.json"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
STAGED = re.compile(r"\.(?P<name>.+)\.staging-[0-9a-f]{12}")  # folder beside a store being written
CONFIG: Any = {
    "write_empty_chunks": True
}  # a chunk of fill values is written too: absent means lost


def open_group(path, format: str | None = None, generation: str | None = None) -> zarr.Group:
    """Open the current generation of a store, read-only.

    Parameters
    ----------
    path : path-like
        The store's folder.
    format : str, optional
        What it must hold, such as ``"dataset"``; None takes any format.
    generation : str, optional
        Open this one instead of the current one, as long as it is still kept.

    Raises
    ------
    StoreError
        If the folder is missing, unfinished, foreign, of another format or of a newer version, or
        if its metadata was altered since it was published.
    """
    pointer = read_pointer(path)
    if format is not None and pointer["format"] != format:
        raise StoreError(f"{path} holds a {pointer['format']}, but a {format} was asked for")
    current = str(pointer.get("current"))
    folder = pathlib.Path(path) / (generation or current)
    if not (folder / POINTER).is_file():
        why = f"{path} names it as current; restore the store"
        if generation not in (None, current):
            why = f"the store was written again since (now {current}); open it again"
        raise StoreError(f"{folder} is missing: {why}")
    published = {current: pointer.get("metadata")} | pointer.get("kept", {})
    with reading(folder):
        if folder.name in published and metadata_digest(folder) != published[folder.name]:
            raise StoreError(f"{folder}: a zarr.json differs from what was published; restore it")
        return zarr.open_group(str(folder), mode="r")


def read_pointer(path) -> dict:
    """Read what the root of a store says: ``format``, ``version``, ``current``, ``fingerprint``."""
    path = pathlib.Path(path)
    if not path.is_dir():
        what = "is a file, not a store" if path.exists() else "does not exist"
        raise StoreError(f"{path} {what}; a dforest store is a folder")
    if not (path / POINTER).exists():
        raise StoreError(f"{path} is not a dforest store: it has no {POINTER}")
    try:
        with reading(path / POINTER):
            pointer = json.loads((path / POINTER).read_bytes())["attributes"]["dforest"]
        found, version = str(pointer["format"]), int(pointer["version"])
        seal = pointer.pop("seal", None)  # none: a foreign writer's, which is believed
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StoreError(
            f"{path} is not a dforest store: its {POINTER} has no dforest attributes, or is "
            "damaged; restore it from a copy, or name another path"
        ) from None
    if not 1 <= version <= VERSION:
        raise StoreError(
            f"{path} holds a {found} of format version {version}, this dforest reads versions 1 to "
            f"{VERSION}; upgrade dforest, or write the store again"
        )
    if seal not in (None, _seal(pointer)):
        raise StoreError(f"{path}: its {POINTER} is damaged; restore it from a copy")
    return pointer


def write_pointer(file, pointer: dict) -> None:
    """Write the root of a store, sealed: a flipped bit in it would be believed, too."""
    sealed = pointer | {"seal": _seal(pointer)}
    text = {"zarr_format": 3, "node_type": "group", "attributes": {"dforest": sealed}}
    pathlib.Path(file).write_text(json.dumps(text, indent=2))


def _seal(pointer: dict) -> str:
    return hashlib.sha256(json.dumps(pointer, sort_keys=True).encode()).hexdigest()[:16]


def fingerprint(path) -> str:
    """Digest of a store's content: equal content written in equal blocks gives equal digests."""
    return str(read_pointer(path)["fingerprint"])


def metadata_digest(folder) -> str:
    """Digest of all metadata of one generation, for a flipped bit there would be believed."""
    folder = pathlib.Path(folder)
    digest = hashlib.sha256()
    for file in [folder / POINTER, *sorted(folder.glob(f"*/{POINTER}"))]:
        digest.update(file.parent.name.encode() if file.parent != folder else b".")
        digest.update(file.read_bytes())
    return digest.hexdigest()


def content_digest(folder) -> str:
    """Digest of every block's name, size and last bytes, which are the block's own checksum."""
    folder = pathlib.Path(folder)
    digest = hashlib.sha256(metadata_digest(folder).encode())
    blocks = (file for file in folder.rglob("*") if file.is_file() and file.name != POINTER)
    for file in sorted(blocks):
        with open(file, "rb") as stored:
            size = stored.seek(0, os.SEEK_END)
            stored.seek(max(0, size - 4))
            digest.update(f"{file.relative_to(folder)} {size} ".encode() + stored.read())
    return digest.hexdigest()


def create_group(folder, format: str, **facts) -> zarr.Group:
    """Create the group of one generation; `dforest.store.staging` makes it a store."""
    said = {"format": format, "version": VERSION} | facts
    plain = {key: _plain(key, value) for key, value in said.items()}
    return zarr.create_group(str(folder), attributes={"dforest": plain})


def facts(group: zarr.Group) -> dict:
    """What a store says about itself: ``format``, ``version`` and the facts of its format."""
    return dict(group.attrs["dforest"])  # type: ignore[arg-type]


def set_facts(group: zarr.Group, more: dict) -> None:
    """Add facts to a group that is being written; numpy numbers and arrays become plain ones."""
    known = dict(group.attrs.get("dforest", {}))  # type: ignore[arg-type]
    group.attrs["dforest"] = known | {key: _plain(key, value) for key, value in more.items()}


def _plain(key: str, value):
    try:
        return json.loads(json.dumps(value, default=lambda item: item.tolist()))
    except (TypeError, ValueError, AttributeError):
        raise SpecError(
            f"fact {key!r} is a {type(value).__name__}, which JSON cannot say"
        ) from None


def create_array(group: zarr.Group, name: str, shape, dtype, chunks, shards=None) -> zarr.Array:
    """Create a checked array: zstd and crc32c on every chunk, NaN where floats are not written.

    Parameters
    ----------
    group : zarr.Group
        From `create_group`.
    name : str
        Letters, digits, ``_``, ``-`` and ``.``.
    shape, chunks, shards : tuple of int
        Extents; chunks of 0 are taken as 1, as an empty array has.
    """
    if not NAME.fullmatch(name):
        raise SpecError(f"array name {name!r} may hold letters, digits, '_', '-' and '.' only")
    dtype = np.dtype(dtype)
    with writing(f"{place_of(group)}: array {name!r}"):
        return group.create_array(
            name,
            shape=tuple(shape),
            dtype=dtype,
            chunks=tuple(max(1, side) for side in chunks),
            shards=shards,
            compressors=[ZstdCodec(checksum=True), Crc32cCodec()],
            fill_value=dtype.type(np.nan) if dtype.kind in "fc" else None,
            config=CONFIG,
        )


def open_array(folder, name: str) -> zarr.Array:
    """Open one array of a generation for writing."""
    try:
        group = zarr.open_group(str(folder), mode="r+")
    except OSError as error:
        raise StoreError(f"{folder} is gone, or cannot be seen from this machine") from error
    return member(group, name).with_config(CONFIG)  # zarr forgets it between openings


def member(group: zarr.Group, name: str) -> zarr.Array:
    """Get an array of a group, or say that it is missing."""
    array = group.get(name)
    if not isinstance(array, zarr.Array):
        raise StoreError(f"{place_of(group)}: array {name!r} is missing; restore the store")
    return array


def block_shape(array: zarr.Array) -> tuple[int, ...]:
    """Shape of what is stored as one file: the shard, or the chunk where there are no shards."""
    return array.shards or array.chunks


def block_file(array: zarr.Array, block) -> pathlib.Path:
    """File of one stored block."""
    return folder_of(array) / array.path / array.metadata.encode_chunk_key(tuple(block))


def folder_of(node: zarr.Group | zarr.Array) -> pathlib.Path:
    """Folder of the generation that a group or an array belongs to."""
    return pathlib.Path(node.store.root)  # type: ignore[attr-defined]


def place_of(node: zarr.Group | zarr.Array) -> str:
    """Name the store of a group or an array as its user knows it, also while it is written.

    >>> STAGED.fullmatch(".z.staging-0123456789ab")["name"]
    'z'
    """
    folder = folder_of(node)
    staged = STAGED.fullmatch(folder.parent.name)
    return str(folder.parent.with_name(staged["name"]) if staged else folder)


def blocks(array: zarr.Array) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of all stored blocks, in order."""
    sides = zip(array.shape, block_shape(array), strict=True)
    return itertools.product(*(range(-(-whole // side)) for whole, side in sides))


def read_block(array: zarr.Array, block) -> np.ndarray:
    """Read one stored block, strictly."""
    return read(array, _region(array, block))


def as_text(array: np.ndarray) -> np.ndarray:
    """Strings of any width, as zarr gives them, as fixed-width numpy strings."""
    return np.array(array.tolist(), dtype=str).reshape(array.shape)


def read(array: zarr.Array, selection=...) -> np.ndarray:
    """Read strictly: a block that is absent, cut short or altered is an error, never fill values.

    Parameters
    ----------
    array : zarr.Array
    selection : slices, ints or int arrays, one per axis
        Arrays select orthogonally: ``(rows, columns)`` gives (len(rows), len(columns)). An int
        keeps its axis, with length 1.

    Raises
    ------
    StoreError
        Naming the path, the array and the block.
    """
    axes = _axes(selection, array.shape)
    blocks = list(itertools.product(*map(_touched, axes, block_shape(array))))
    for block in blocks:
        _require(array, block)
    if not blocks:
        return np.empty([_length(axis) for axis in axes], array.dtype)
    try:
        if all(isinstance(axis, slice) for axis in axes):
            return np.asarray(array[tuple(axes)])
        return np.asarray(array.oindex[tuple(axes)])
    except MemoryError:
        raise
    except Exception as error:  # codecs raise many kinds; each means that stored bytes are wrong
        raise _damage(array, blocks, error) from error


def _axes(selection, shape) -> list:
    """Selection as one slice of step 1, or one array of indices in range, per axis."""
    given = list(selection) if isinstance(selection, tuple) else [selection]
    if Ellipsis in [item for item in given if item is Ellipsis]:
        at = next(k for k, item in enumerate(given) if item is Ellipsis)
        given[at : at + 1] = [slice(None)] * (len(shape) - len(given) + 1)
    given += [slice(None)] * (len(shape) - len(given))
    return [as_axis(item, side) for item, side in zip(given, shape, strict=True)]


def as_axis(item, side: int) -> slice | np.ndarray:
    """Selection along one axis, as a slice of step 1 or as indices in 0..side - 1."""
    if isinstance(item, slice):
        start, stop, step = item.indices(side)
        return slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
    index = np.atleast_1d(np.asarray(item))
    if index.dtype == bool:
        index = np.flatnonzero(index)
    index = index.astype(np.int64)
    if index.size and not (-side <= index.min() and index.max() < side):
        raise DataError(
            f"row or column {index[np.abs(index).argmax()]} is out of range 0..{side - 1}"
        )
    return np.where(index < 0, index + side, index)


def _length(axis) -> int:
    return axis.stop - axis.start if isinstance(axis, slice) else len(axis)


def _touched(axis, side: int) -> list[int]:
    if isinstance(axis, slice):
        return (
            list(range(axis.start // side, -(-axis.stop // side))) if axis.stop > axis.start else []
        )
    return np.unique(axis // side).tolist()


def _require(array: zarr.Array, block) -> None:
    file = block_file(array, block)
    try:
        found = "is empty" if file.stat().st_size == 0 else None
    except OSError:
        found = "is missing"
    if found:
        raise StoreError(_complaint(array, block, found))


def _complaint(array: zarr.Array, block, what: str) -> str:
    at = tuple(int(part) for part in block)
    return (
        f"{place_of(array)}: array {array.path!r}, block {at} {what}; "
        "restore it from a copy or write the store again"
    )


def _damage(array: zarr.Array, blocks, error: Exception) -> StoreError:
    """Find the block that cannot be read among those that were wanted."""
    for block in blocks:
        try:
            array[_region(array, block)]
        except Exception as found:
            reason = " ".join(str(found).split())[:120] or type(found).__name__
            return StoreError(_complaint(array, block, f"is damaged ({reason})"))
    return StoreError(
        f"{place_of(array)}: array {array.path!r} could not be read ({error}); try again"
    )


def _region(array: zarr.Array, block) -> tuple[slice, ...]:
    return tuple(
        slice(b * side, min((b + 1) * side, whole))
        for b, side, whole in zip(block, block_shape(array), array.shape, strict=True)
    )


def write_block(array: zarr.Array, block, values: np.ndarray) -> int:
    """Write one whole stored block and return its size in bytes on disk.

    Whole, because two writers that share a block lose each other's values without any error.
    """
    region = _region(array, block)
    wanted = tuple(part.stop - part.start for part in region)
    if values.shape != wanted:
        raise DataError(
            f"{place_of(array)}: array {array.path!r}, block {tuple(block)} has shape {wanted}, "
            f"but values of shape {values.shape} were given; write whole blocks"
        )
    with writing(f"{place_of(array)}: array {array.path!r}, block {tuple(block)}"):
        array[region] = values
        return block_file(array, block).stat().st_size
