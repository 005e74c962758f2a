"""A folder of Parquet or CSV files, one per relation, that is there whole or not at all, and a manifest of it.

The files are written into a folder beside the wanted one, which takes its name when all of them are on disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.errors import RunlakeError, UsageError
from analytics.export import Options, refuse_lake, write_folder
from analytics.values import as_json

if TYPE_CHECKING:
    from analytics.api import Lake

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1


def export_folder(
    lake: Lake, relations: dict[str, Any], folder: Path, options: Options, *, filters: dict[str, Any],
    runlake_version: str, force: bool = False,
) -> Iterator[tuple[Path, int]]:  # fmt: skip
    """Writes the relations; each is told, with its number of rows, and the folder is there after the last.

    `force`: a folder with something in it is replaced.
    """
    with _taking_its_place(folder, force=force) as partial:
        listed = []
        told = write_folder(relations, partial, options, are_few=lake.has_few_events, naming=lake.naming)
        for (file, rows), (name, relation) in zip(told, relations.items(), strict=True):
            columns = zip(relation.columns, relation.types, strict=True)
            listed.append({
                "relation": name, "file": file.name, "rows": rows, "bytes": file.stat().st_size,
                "sha256": _digest(file),
                "columns": [{"name": column, "type": str(kind)} for column, kind in columns],
            })  # fmt: skip
            yield folder / file.name, rows
        manifest = {
            "manifest_version": MANIFEST_VERSION, "runlake_version": runlake_version, "lake_version": lake.version,
            "format": options.format, "filters": {k: str(v) for k, v in filters.items() if v is not None},
            "files": listed,
        }  # fmt: skip
        (partial / MANIFEST).write_bytes(as_json(manifest) + b"\n")


@contextmanager
def _taking_its_place(folder: Path, *, force: bool) -> Iterator[Path]:
    """An empty folder that becomes `folder` if all goes well, and else leaves nothing behind."""
    _refuse(folder, force=force)
    place = folder.absolute()
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in partial.iterdir():
            _sync(file)
        _sync(partial)
        if place.exists():
            place.rename(old)
        try:
            partial.rename(place)
        except OSError:
            if old.exists():
                old.rename(place)
            raise
        _sync(place.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise RunlakeError.from_os("write", folder, error) from error
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(partial)


def _refuse(folder: Path, *, force: bool) -> None:
    """A usage error for what must not be replaced."""
    refuse_lake(folder)
    if not os.path.lexists(folder):
        return
    if not folder.is_dir() or folder.is_symlink():
        raise UsageError(f"{folder} is no folder. Name a new one, or an empty one.")
    if (folder / "runlake.json").exists() or (folder / "_delta_log").exists():
        raise UsageError(f"{folder} is a lake. Write somewhere else.")
    if not any(folder.iterdir()):
        return
    if not force:
        raise UsageError(f"{folder} is not empty. Name a new folder, or replace all that is in it with --force.")
    place = folder.resolve()
    if place in (Path.cwd(), Path.home(), *Path.cwd().parents) or any(place.glob("*/_delta_log")):
        raise UsageError(f"{folder} holds more than an export, so it is not replaced. Name another folder.")


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as data:
        while block := data.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    """What was written is on disk before it takes its name."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
