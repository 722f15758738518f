"""Scratch: large arrays that many tasks read at once, as memory maps of plain ``.npy`` files."""

import json
import os
import pathlib
import shutil
import tempfile
import uuid

import numpy as np

from dforest.errors import SpecError, StoreError
from dforest.store.disk import writing
from dforest.store.schema import NAME

LISTING = "scratch.json"


def scratch_home() -> str:
    """Folder that scratch is made under: ``DFOREST_SCRATCH``, else the host's temporary folder."""
    return os.environ.get("DFOREST_SCRATCH", tempfile.gettempdir())


class Scratch:
    """Arrays in a folder, uncompressed, that every process of a host maps without a copy.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/pool"
    >>> Scratch.save(folder, {"z": np.eye(2, dtype=np.float32)})
    >>> Scratch.open(folder)["z"].sum()
    np.float32(2.0)
    """

    @staticmethod
    def save(folder, arrays: dict[str, np.ndarray]) -> None:
        """Write the arrays to ``folder``, replacing the scratch that was there; whole or absent."""
        with Scratch.create(folder, {k: (v.shape, v.dtype) for k, v in arrays.items()}) as maps:
            for name, array in arrays.items():
                maps[name][...] = array

    @staticmethod
    def create(folder, shapes: dict[str, tuple]) -> "_Draft":
        """Fill large arrays in place: a ``with`` block over writable maps, kept if it succeeds.

        Parameters
        ----------
        folder : path-like
        shapes : dict of str to (shape, dtype)
        """
        return _Draft(pathlib.Path(folder), shapes)

    @staticmethod
    def open(folder) -> dict[str, np.ndarray]:
        """Map the arrays of ``folder``, read-only.

        Raises
        ------
        StoreError
            If the folder is missing or unfinished, or a file has not the size it was written with.
        """
        folder = pathlib.Path(folder)
        try:
            listing = json.loads((folder / LISTING).read_text())
        except (OSError, ValueError):
            raise StoreError(f"{folder} is no finished scratch folder; write it again") from None
        return {name: _map(folder / f"{name}.npy", *said) for name, said in listing.items()}


class _Draft:
    """Writable maps in a folder beside the final one, which takes its place at the end."""

    def __init__(self, folder: pathlib.Path, shapes: dict[str, tuple]):
        for name in shapes:
            if not NAME.fullmatch(name):
                raise SpecError(f"array name {name!r} may hold letters, digits, '_', '-', '.' only")
        is_ours = not folder.exists() or (folder / LISTING).is_file()
        if not is_ours and (not folder.is_dir() or any(folder.iterdir())):
            raise StoreError(f"{folder} holds something else; remove it or choose another path")
        self.folder, self.shapes = folder, shapes
        self.draft = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:12]}.draft")

    def __enter__(self) -> dict[str, np.ndarray]:
        self.maps: dict[str, np.ndarray] = {}
        with writing(self.folder):
            self.draft.mkdir(parents=True)
            for name, (shape, dtype) in self.shapes.items():
                file = self.draft / f"{name}.npy"
                if np.prod(shape, dtype=np.int64):
                    self.maps[name] = np.lib.format.open_memmap(file, "w+", dtype, tuple(shape))
                else:  # no bytes to map
                    self.maps[name] = np.empty(shape, dtype)
                    np.save(file, self.maps[name])
        return self.maps

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                with writing(self.folder):
                    self._publish()
        finally:
            self.maps.clear()
            shutil.rmtree(self.draft, ignore_errors=True)

    def _publish(self) -> None:
        for array in self.maps.values():
            if isinstance(array, np.memmap):
                array.flush()
        sizes = {name: (self.draft / f"{name}.npy").stat().st_size for name in self.maps}
        listing = {name: [sizes[name], array.size == 0] for name, array in self.maps.items()}
        (self.draft / LISTING).write_text(json.dumps(listing))
        if self.folder.exists():
            old = self.draft.with_suffix(".old")
            os.rename(self.folder, old)
            shutil.rmtree(old, ignore_errors=True)
        os.rename(self.draft, self.folder)


def _map(file: pathlib.Path, size: int, is_empty: bool) -> np.ndarray:
    try:
        found = file.stat().st_size
        if found == size:
            array = np.load(file, mmap_mode=None if is_empty else "r", allow_pickle=False)
            array.flags.writeable = False
            return array
    except (OSError, ValueError) as error:
        raise StoreError(f"{file}: cannot be mapped ({error}); write the scratch again") from None
    raise StoreError(f"{file} has {found:,} bytes instead of {size:,}; write the scratch again")
