"""Disks that are too small, and files that are not what they were."""

import contextlib
import pathlib
import resource
import subprocess
from collections.abc import Iterator

DAMAGE = {
    "deleted": lambda file: file.unlink(),
    "emptied": lambda file: file.write_bytes(b""),
    "cut to half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "cut by a byte": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "grown": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "zeroed": lambda file: file.write_bytes(bytes(file.stat().st_size)),
}


@contextlib.contextmanager
def flipped(file: pathlib.Path, byte: int, bit: int) -> Iterator[None]:
    """Flip one bit of a file for a while; ``byte`` may be beyond its end, and wraps around."""
    whole = file.read_bytes()
    wrong = bytearray(whole)
    wrong[byte % len(whole)] ^= 1 << bit
    with replaced(file):
        file.write_bytes(wrong)
        yield


@contextlib.contextmanager
def replaced(file: pathlib.Path) -> Iterator[None]:
    """Give a file its content back, whatever was done to it."""
    whole = file.read_bytes()
    try:
        yield
    finally:
        file.write_bytes(whole)


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, n_bytes: int) -> Iterator[None]:
    """A folder on a disk of so many bytes.

    Where mounting is not permitted, no file may have a sixteenth of them.
    """
    options = f"size={n_bytes}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        is_mounted = False
    if not is_mounted:
        with small_files(n_bytes // 16):
            yield
        return
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def small_files(n_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes; writing more fails in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
