"""What a lake on an object store does otherwise than one in a folder: how it is made, listed and cleaned.

There is no lock, so a writer on another host may be at work at any time. What it has written and not yet committed
looks like what a killed writer left; only age tells them apart.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from analytics import objects, vacuum
from analytics.errors import LakeError
from analytics.lakefiles import runlake_version
from analytics.lakesettings import NAME, Settings
from analytics.places import Place, below, parquet_file
from analytics.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from analytics.lake import Store

ORPHAN_SECONDS = 24 * 3600.0  # a batch of an ingest is read and committed in minutes


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file as the store lists it."""

    size_bytes: int
    modified: float  # seconds since 1970, by the store's clock


def data_files(root: Place) -> dict[str, DataFile]:
    """Every data file below the lake, committed or not, by its path inside the lake: a request for each thousand."""
    listed = objects.listed(str(root), prefix="record=")
    cut = len(below(root, ""))
    return {p[cut:]: DataFile(info["size"], modified(info)) for p, info in listed.items() if p.endswith(".parquet")}


def modified(info: dict[str, Any]) -> float:
    """When an object was last written; the stores name it differently. Now, where none says."""
    said = next((info[name] for name in ("LastModified", "mtime", "updated", "last_modified") if info.get(name)), None)
    if isinstance(said, str):
        said = datetime.fromisoformat(said)
    return said.timestamp() if isinstance(said, datetime) else time.time()


def create(root: Place) -> None:
    """The settings and the first version of a lake. Of several who create at once one makes it, the others find it."""
    settings = Settings(SCHEMA_VERSION, runlake_version())
    path = below(root, NAME)
    objects.write_new(path, settings.text)
    if objects.write_new(path, settings.text):
        raise LakeError.no_conditional_put(str(root))
    from analytics import commits  # noqa: PLC0415 (0.1 s; there is a lake already, mostly)

    try:
        commits.create(root)
    except LakeError:
        if objects.info_of(below(root, f"_delta_log/{0:020d}.json")) is None:
            raise


def vacuum_orphans(store: Store) -> list[str]:
    """Deletes data files that no version in the log names and that are older than a day; gives their paths.

    Younger ones may be those of a writer on another host, which will commit them.
    """
    live = {file.relative for file in store.all_files}
    deadline = time.time() - ORPHAN_SECONDS
    strays = [p for p, file in data_files(store.root).items() if p not in live and file.modified < deadline]
    if strays:
        named = _named_by_log(store.root)
        strays = sorted(path for path in strays if path not in named)
    objects.delete(store.root, strays)
    return strays


def vacuum_replaced(store: Store, retention_hours: float) -> list[str]:
    """Deletes data files that the newest version no longer has and that left it longer ago than the retention."""
    live = {file.relative for file in store.all_files}
    deadline = (time.time() - retention_hours * 3600) * 1000
    named = _named_by_log(store.root)
    old = sorted(p for p in data_files(store.root) if p not in live and p in named and named[p] <= deadline)
    objects.delete(store.root, old)
    return old


def _named_by_log(root: Place) -> dict[str, float]:
    """Every data file that any version in the log names, with the time (ms) it was last added or removed."""
    named: dict[str, float] = {}
    paths = sorted(objects.listed(below(root, "_delta_log")))
    for text in objects.texts([path for path in paths if path.endswith(".json")]):
        vacuum.note_commit(named, text.splitlines())
    for path in paths:
        if ".checkpoint" in path and path.endswith(".parquet"):
            with parquet_file(root / path.removeprefix(below(root, ""))) as reader:
                vacuum.note_checkpoint(named, reader)
    return named
