"""`runlake status`: what the lake holds, and what on disk is no longer as it was read."""
# ruff: noqa: PLC0415, FBT002 (a switch is a truth value)

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from analytics.commands.options import FormatOption, FormulasOption, LakeOption, OutOption, Output, emit, opened
from analytics.places import host_name, is_remote

if TYPE_CHECKING:
    from analytics.api import Lake
    from analytics.discover import Found

State = Literal["unchanged", "grown", "changed", "gone", "new", "elsewhere", "stream", "hidden"]

_SOURCES = """
    SELECT path, wire, host, status, size_bytes, mtime_ns, inode, lines, events, refused_lines, pending_bytes, last_seen
    FROM sources ORDER BY path, source_id
"""


def status(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]…", help="Also look here for what was never read.", show_default=False),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="One row per source with its state, instead of the sums.")
    ] = False,
    lake: LakeOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """What the lake holds, and what has changed on disk since.

    A source is unchanged, grown, changed, gone (its rows are kept), or new; hidden, where its path has a secret in it
    and so is not known to the lake; pending is an unterminated last line, not yet data.
    """
    import pyarrow as pa

    from analytics.commands.facts import as_rows

    output = Output(format_, out, formulas)
    with opened(lake) as source:
        sources = _states(source, paths or [])
        if each:
            columns = ("path", "state", "wire", "lines", "events", "refused_lines", "pending_bytes", "last_seen")
            emit(pa.table({name: [row[name] for row in sources] for name in columns}), output)
        else:
            emit(as_rows(_sums(source, sources, looked=bool(paths)), output), output)


def _sums(lake: Lake, sources: list[dict[str, Any]], *, looked: bool) -> dict[str, Any]:
    files = lake.store.all_files
    settings = lake.store.settings
    states = Counter(row["state"] for row in sources)
    facts: dict[str, Any] = {"lake": str(lake.path), "version": lake.version, "parquet_files": len(files)}
    facts["bytes"] = sum(file.size_bytes for file in files)
    facts["events"] = sum(file.rows for file in files if file.record == "event")
    facts["refusals"] = sum(file.rows for file in files if file.record == "refusal")
    facts["sources"] = len(sources) - states["new"]
    facts |= {f"sources_{state}": states[state] for state in ("unchanged", "grown", "changed", "gone")}
    facts |= {f"sources_{state}": states[state] for state in ("elsewhere", "stream", "hidden") if states[state]}
    facts["sources_new"] = states["new"] if looked else None
    facts["sources_skipped"] = sum(row["status"] == "skipped" for row in sources)
    facts["pending_tails"] = sum((row["pending_bytes"] or 0) > 0 for row in sources)
    facts["redaction"] = "off for some sources" if settings.unredacted else "on"
    facts["access"] = "shared" if settings.shared else "private"
    return facts


def _states(lake: Lake, paths: Iterable[str]) -> list[dict[str, Any]]:
    """Every source of the ledger with its state on disk, then what the paths have beside."""
    from analytics.discover import discover
    from analytics.redact import Redactor

    rows: list[dict[str, Any]] = lake.sql(_SOURCES).to_arrow_table().to_pylist()
    here, stores = host_name(), _in_stores([row["path"] for row in rows if is_remote(row["path"])])
    for row in rows:
        row["state"] = _state(row, here, stores)
    known = {row["path"] for row in rows}
    hidden = Redactor() if any(row["state"] == "hidden" for row in rows) else None
    missing = dict.fromkeys(rows[0] if rows else ("path", "wire", "status", "lines", "events", "refused_lines"))
    blank = missing | {"pending_bytes": None, "last_seen": None, "state": "new"}
    new = [one.display for one in discover(paths).found if one.display not in known]
    if hidden is not None:
        new = [path for path in new if hidden.json_line(path)[0] not in known]
    return rows + [blank | {"path": path} for path in new]


def _in_stores(paths: list[str]) -> Mapping[str, Found]:
    """What the object stores have of these paths."""
    if not paths:
        return {}
    from analytics.objectsources import found_beside

    return found_beside(paths)


def _state(row: dict[str, Any], here: str, stores: Mapping[str, Found]) -> State:
    from analytics.discover import inode_of

    if row["host"] not in (None, here) and not is_remote(row["path"]):
        return "elsewhere"
    if not (row["path"].startswith("/") or is_remote(row["path"])):
        return "stream"
    if "[REDACTED:" in row["path"]:
        return "hidden"
    if is_remote(row["path"]):
        found = stores.get(row["path"])
        if found is None:
            return "gone"
        seen, is_file = (found.size, found.mtime_ns, found.inode), True
    else:
        try:
            info = os.stat(_real(row["path"]))
        except OSError:
            return "gone"
        seen, is_file = (info.st_size, info.st_mtime_ns, inode_of(info)), stat.S_ISREG(info.st_mode)
    if seen == (row["size_bytes"], row["mtime_ns"], row["inode"]):
        return "unchanged"
    return "grown" if is_file and seen[0] > (row["size_bytes"] or 0) else "changed"


def _real(path: str) -> bytes | str:
    """The path on disk of a path in the ledger, where bytes that are not UTF-8 are backslash-escaped."""
    if "\\x" not in path or os.path.lexists(path):
        return path
    return re.sub(rb"\\x([89a-f][0-9a-f])", lambda hit: bytes.fromhex(hit[1].decode()), path.encode())
