"""Commands on stores: make one from a file, say what one holds."""

import pathlib
import time
from typing import Any

from dforest.jobs.record import FILE, read_record
from dforest.run.events import Event, emit
from dforest.store import ingest as ingesting
from dforest.store.describe import describe
from dforest.store.lock import is_locked


def ingest(source: str, path: str, **options: Any) -> dict[str, Any]:
    """Bring a file into a store, telling how far it is; see `dforest.store.ingest.ingest`."""
    start, total = time.monotonic(), 1

    def tell(done: int, of: int | None) -> None:
        nonlocal total
        total = of or max(done, 1)
        emit(Event("ingest", "step", done, total, time.monotonic() - start, 0))

    try:
        facts = ingesting.ingest(source, path, progress=tell, **options)
    finally:
        emit(Event("ingest", "end", total, total, time.monotonic() - start, 0))
    return {"path": path, **{key: _short(value) for key, value in facts.items()}}


def inspect(path: str) -> dict[str, Any]:
    """Say what a store, a model or a run's folder holds; nothing but facts is read.

    Raises
    ------
    StoreError
        There is nothing there, or nothing of dforest's.
    """
    place = pathlib.Path(path)
    if (place / FILE).is_file():
        record = read_record(place)
        if record["status"] == "running" and not is_locked(place):
            record["status"] = "stopped (killed)"
        keys = ("format", "status", "started", "seconds", "error", "results")
        return {"path": path, **{key: record[key] for key in keys if key in record}}
    return {key: _short(value) for key, value in describe(place).items()}


def _short(value: Any) -> Any:
    """A long list by its beginning."""
    if isinstance(value, list) and len(value) > 10:
        return [*value[:10], f"... ({len(value)} in all)"]
    return value
