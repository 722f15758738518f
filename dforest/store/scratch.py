"""Scratch: large arrays that many tasks read at once, as memory maps of plain ``.npy`` files."""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator

import numpy as np

from dforest.errors import DforestError, LockedError, SpecError, StoreError
from dforest.store.disk import link_or_copy, remove_tree, writing
from dforest.store.lock import Lock
from dforest.store.schema import NAME

LISTING = "scratch.json"


def scratch_home() -> str:
    """Folder that scratch is made under: ``DFOREST_SCRATCH``, else the host's temporary folder."""
    return os.environ.get("DFOREST_SCRATCH", tempfile.gettempdir())


@contextlib.contextmanager
def scratch_folder() -> Iterator[pathlib.Path]:
    """Make an empty folder under the `scratch_home`, and remove it at the end.

    Folders of our own processes on this machine that were killed are removed, too, unless the
    machine was started again since: those have to be removed by hand.
    """
    home = pathlib.Path(scratch_home())
    mark = f"dforest-{_machine()}-{os.getuid()}-"  # nobody else's: we could not even lock those
    with writing(home):
        home.mkdir(parents=True, exist_ok=True)
        _remove_dead(home, mark)
    folder = home / f"{mark}{uuid.uuid4().hex[:12]}"
    with Lock(folder):  # before it exists: a folder that nobody holds is a dead one's
        try:
            with writing(folder):
                folder.mkdir(mode=0o700)
            yield folder
        finally:
            remove_tree(folder)


def _remove_dead(home: pathlib.Path, mark: str) -> None:
    for entry in home.iterdir():
        if entry.name.startswith(mark):
            with contextlib.suppress(LockedError), Lock(entry):
                remove_tree(entry)


def _machine() -> str:
    """Name of the kernel that keeps our locks: other machines may not see them."""
    try:
        name = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        name = socket.gethostname()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


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
        """Write the arrays to ``folder``, replacing the scratch that was there; whole or absent.

        An array that is the map of a scratch file is linked, not copied.
        """
        files = {name: file for name, array in arrays.items() if (file := _file_of(array))}
        shapes = {k: (v.shape, v.dtype) for k, v in arrays.items() if k not in files}
        with Scratch.create(folder, shapes, files) as maps:
            for name in shapes:
                maps[name][...] = arrays[name]

    @staticmethod
    def create(folder, shapes: dict[str, tuple], files: dict[str, str] | None = None) -> "_Draft":
        """Fill large arrays in place: a ``with`` block over writable maps, kept if it succeeds.

        Parameters
        ----------
        folder : path-like
        shapes : dict of str to (shape, dtype)
        files : dict of str to path, optional
            More arrays: ``.npy`` files that are linked as they are.
        """
        return _Draft(pathlib.Path(folder), shapes, files or {})

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


def write_part(file, corner: tuple[int, int], values: np.ndarray) -> None:
    """Write a rectangle of a 2-D ``.npy`` file that is being filled by several processes.

    Row by row and not through a map: two hosts that map one page would undo each other's work.

    Parameters
    ----------
    file : path-like
        Of C-ordered numbers, as `Scratch.create` begins it.
    corner : (int, int)
        Where values[0, 0] goes.
    values : (rows, columns), C-contiguous, of the file's dtype
    """
    whole = np.load(file, mmap_mode="r", allow_pickle=False)
    offset, width, size = whole.offset, whole.shape[1], whole.itemsize
    with writing(file), open(file, "r+b", buffering=0) as stored:
        for i, row in enumerate(values):
            at = offset + size * ((corner[0] + i) * width + corner[1])
            if os.pwrite(stored.fileno(), row.data, at) != row.nbytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Draft:
    """Writable maps in a folder beside the final one, which takes its place at the end."""

    def __init__(self, folder: pathlib.Path, shapes: dict[str, tuple], files: dict[str, str]):
        for name in (*shapes, *files):
            if not NAME.fullmatch(name):
                raise SpecError(f"array name {name!r} may hold letters, digits, '_', '-', '.' only")
        is_ours = not folder.exists() or (folder / LISTING).is_file()
        if not is_ours and (not folder.is_dir() or any(folder.iterdir())):
            raise StoreError(f"{folder} holds something else; remove it or choose another path")
        self.folder, self.shapes, self.files = folder, shapes, files
        self.draft = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:12]}.draft")

    def __enter__(self) -> dict[str, np.ndarray]:
        self.maps: dict[str, np.ndarray] = {}
        try:
            with writing(self.folder):
                self._begin()
        except BaseException:
            self.__exit__(DforestError)
            raise
        return self.maps

    def _begin(self) -> None:
        self.draft.mkdir(parents=True)
        for name, (shape, dtype) in self.shapes.items():
            file = self.draft / f"{name}.npy"
            if np.prod(shape, dtype=np.int64):
                self.maps[name] = np.lib.format.open_memmap(file, "w+", dtype, tuple(shape))
                _claim(file)
            else:  # no bytes to map
                self.maps[name] = np.empty(shape, dtype)
                np.save(file, self.maps[name])
        for name, other in self.files.items():
            link_or_copy(other, self.draft / f"{name}.npy")

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
        names = [*self.maps, *self.files]
        empty = {name for name, array in self.maps.items() if array.size == 0}
        sizes = {name: (self.draft / f"{name}.npy").stat().st_size for name in names}
        listing = {name: [sizes[name], name in empty] for name in names}
        (self.draft / LISTING).write_text(json.dumps(listing))
        if self.folder.exists():
            old = self.draft.with_suffix(".old")
            os.rename(self.folder, old)
            shutil.rmtree(old, ignore_errors=True)
        os.rename(self.draft, self.folder)


def _claim(file: pathlib.Path) -> None:
    """Take the disk's space for a file now: a map that finds none later would kill the process."""
    with open(file, "r+b") as stored:
        os.posix_fallocate(stored.fileno(), 0, file.stat().st_size)


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


def _file_of(array: np.ndarray) -> str | None:
    """The ``.npy`` file that a read-only map shows, if it shows all of it."""
    if not isinstance(array, np.memmap) or array.flags.writeable or array.filename is None:
        return None
    try:
        whole = np.load(array.filename, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return None
    seen = [(map.offset, map.shape, map.strides, map.dtype) for map in (array, whole)]
    return os.fspath(array.filename) if seen[0] == seen[1] else None
