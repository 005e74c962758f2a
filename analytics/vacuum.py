"""Deleting data files: those that no version names, and those whose last version is old enough.

The log is the only judge. The caller holds the lake's lock, so what no version names was left by a killed writer.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from analytics.places import is_remote

if TYPE_CHECKING:
    from analytics.lake import Store

FACTS_FOLDER = "_facts"
FORGOTTEN_AFTER_S = 24 * 3600
_HALF_WRITTEN_AFTER_S = 3600


def vacuum_orphans(store: Store) -> list[str]:
    """Deletes data files that no version in the log names, and the log's own half-written files."""
    if is_remote(store.root):
        from analytics import remotelake  # noqa: PLC0415 (local lakes need none of it)

        return remotelake.vacuum_orphans(store)
    live = {file.relative for file in store.all_files}
    strays = [path for path in _data_files(store.root) if path not in live]
    if strays:
        named = _named_by_log(store.root)
        strays = [path for path in strays if path not in named]
    _delete(store.root, strays)
    for pattern in ("_delta_log/*.tmp", "_delta_log/*#*", ".*.tmp"):
        for path in store.root.glob(pattern):
            path.unlink(missing_ok=True)
    vacuum_facts(store.root)
    return strays


def vacuum_facts(root: Path) -> None:
    """Deletes what was computed and nobody has asked for in a day, and what was left half-written.

    No version names these files, and who misses one computes it again: no lock is needed.
    """
    now = time.time()
    for folder in (root / FACTS_FOLDER).glob("*"):
        with suppress(OSError):  # somebody else does the same
            if now - folder.stat().st_mtime > FORGOTTEN_AFTER_S:
                shutil.rmtree(folder)
                continue
        for path in folder.glob(".*.tmp"):
            with suppress(OSError):
                if now - path.stat().st_mtime > _HALF_WRITTEN_AFTER_S:
                    path.unlink()


def vacuum_replaced(store: Store, retention_hours: float) -> list[str]:
    """Deletes data files that the newest version no longer has and that left it longer ago than the retention."""
    if is_remote(store.root):
        from analytics import remotelake  # noqa: PLC0415 (the same)

        return remotelake.vacuum_replaced(store, retention_hours)
    live = {file.relative for file in store.all_files}
    deadline = (time.time() - retention_hours * 3600) * 1000
    named = _named_by_log(store.root)
    old = [p for p in _data_files(store.root) if p not in live and p in named and named[p] <= deadline]
    _delete(store.root, old)
    return old


def _data_files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.glob("record=*/wire=*/*.parquet"))


def _delete(root: Path, relatives: Iterable[str]) -> None:
    for relative in relatives:
        (root / relative).unlink(missing_ok=True)
        with suppress(OSError):
            (root / relative).parent.rmdir()


def _named_by_log(root: Path) -> dict[str, float]:
    """Every data file that any version in the log names, with the time (ms) it was last added or removed."""
    named: dict[str, float] = {}
    for path in sorted((root / "_delta_log").glob("*.json")):
        with path.open(encoding="utf-8") as log:
            note_commit(named, log)
    for path in (root / "_delta_log").glob("*.checkpoint*.parquet"):
        import pyarrow.parquet as pq  # noqa: PLC0415 (0.15 s, and few logs have one)

        note_checkpoint(named, pq.ParquetFile(path))
    return named


def note_checkpoint(named: dict[str, float], checkpoint: Any) -> None:
    """What a checkpoint in the log names, with the time (ms)."""
    for row in checkpoint.read(columns=["add.path", "remove.path", "remove.deletionTimestamp"]).to_pylist():
        _note(named, row)


def note_commit(named: dict[str, float], lines: Iterable[str]) -> None:
    """What a commit in the log names, with the time (ms)."""
    for line in lines:
        if '"add"' in line or '"remove"' in line:
            _note(named, json.loads(line))


def _note(named: dict[str, float], entry: dict[str, Any]) -> None:
    for action, field in (("add", "modificationTime"), ("remove", "deletionTimestamp")):
        said = entry.get(action)
        if said and said.get("path"):
            path = unquote(said["path"])
            named[path] = max(named.get(path, 0), said.get(field) or 0)
