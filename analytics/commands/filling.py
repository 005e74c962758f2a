"""Filling and keeping a lake: ingest, its checks, its history, and compaction."""
# ruff: noqa: PLC0415, FBT002 (a switch is a truth value)

from __future__ import annotations

import glob
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.commands.options import (
    EngineOption,
    FormatOption,
    FormulasOption,
    LakeOption,
    MasterOption,
    OutOption,
    Output,
    State,
    VersionOption,
    emit,
    lake_path,
    opened,
    say,
    spark_session,
)
from analytics.errors import UsageError
from analytics.places import absolute, is_remote

if TYPE_CHECKING:
    from analytics.api import Lake
    from analytics.ingestreport import IngestReport

FAILURES_TOLD = 20


def ingest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH…", help="Files, folders, quoted globs, or - for stdin.", show_default=False),
    ] = None,
    lake: LakeOption = None,
    agents: Annotated[
        bool,
        typer.Option("--agents", help="Read what Claude Code and Codex keep in their homes, alone or beside paths."),
    ] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; all cores by default.")] = None,
    wire: Annotated[
        str | None, typer.Option("--wire", metavar="NAME", help="Read every file as this wire instead of sniffing.")
    ] = None,
    redact: Annotated[
        bool,
        typer.Option("--redact/--no-redact", help="Replace secrets before anything is written; the lake says if not."),
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if anything was refused or could not be read.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Read also what has not changed since, replacing what is in the lake.")
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Make a new lake with the usual file modes instead of private ones.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="NAME", help="What this machine is called in the lake; else RUNLAKE_HOST, else its name."
        ),
    ] = None,
    max_line_bytes: Annotated[
        int | None,
        typer.Option("--max-line-bytes", min=1024, metavar="BYTES", help="Longer lines are refused by name."),
    ] = None,
    max_document_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-document-bytes", min=1024, metavar="BYTES", help="Larger JSON documents are refused by name."
        ),
    ] = None,
    max_ratio: Annotated[
        int | None,
        typer.Option(
            "--max-ratio", min=2, metavar="N", help="Compressed files that expand further are refused by name."
        ),
    ] = None,
    engine: EngineOption = "local",
    master: MasterOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Reads streams into the lake, making it if needed. What was read before costs a stat; what grew is read on.

    Without a path it reads nothing: it says what --agents would read, and exits 2.
    """
    from analytics.commands.facts import as_rows
    from analytics.commands.progress import Bar
    from analytics.discover import display
    from analytics.ingest import ingest as run
    from analytics.wires import BY_NAME

    if wire is not None and wire not in BY_NAME:
        raise UsageError.unknown_name("wire", wire, list(BY_NAME))
    paths = paths or []
    if agents:
        paths = [*paths, *_homes_of_agents(wire, must_exist=not paths)]
    elif not paths:
        raise _offer(wire, lake)
    if "-" in paths and sys.stdin is None:
        raise UsageError("Standard input is closed. Pipe a stream into it, or name a file.")
    if not any(
        path == "-" or is_remote(path) or os.path.lexists(path) or (glob.has_magic(path) and glob.glob(path))
        for path in paths
    ):
        raise UsageError.no_source(paths)
    given = {"max_line_bytes": max_line_bytes, "max_document_bytes": max_document_bytes, "max_ratio": max_ratio}
    limits: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    signal.signal(signal.SIGTERM, _terminated)
    spark = spark_session(engine, master)
    with Bar() as progress:
        done = run(
            lake_path(lake), paths, jobs=jobs, wire=wire, redact=redact, again=again, shared=shared, host=host,
            spark=spark,
            progress=progress, **limits,
        )  # fmt: skip
    _tell(done)
    output = Output(format_, out, formulas)
    emit(as_rows(_closing(done), output), output)
    named = {display(text) for path in paths for text in (path, absolute(path))}
    is_named = any(path in named for path, _ in done.problems)  # that file was the work
    if is_named or (strict and (done.refusals_by_reason or done.problems)):
        raise typer.Exit(1)


def _homes_of_agents(wire: str | None, *, must_exist: bool) -> list[str]:
    """The folders that --agents reads; says what is in them."""
    from analytics.agents import AGENTS, find_homes, looked_in

    written = [agent.wire for agent in AGENTS]
    if wire is not None and wire not in written:
        raise UsageError(f"--agents reads {' and '.join(written)}, --wire names {wire}. Leave one of the two out.")
    homes = find_homes(wire=wire)
    missing = UsageError.no_agents([folder for _, folder in looked_in()], [agent.variable for agent in AGENTS])
    if not homes and must_exist:
        raise missing
    for home in homes:
        say(str(home))
    if not homes:
        say(str(missing))
    return [home.folder for home in homes]


def _offer(wire: str | None, lake: str | None) -> UsageError:
    """What an ingest of nothing is answered: what could be read, and how. Not done unasked: transcripts are private."""
    from analytics.agents import find_homes

    homes = find_homes(wire=wire)
    for home in homes:
        say(str(home))
    named = {"--lake": lake or State.lake, "--wire": wire}
    switches = [f" {switch} {shlex.quote(str(value))}" for switch, value in named.items() if value is not None]
    return UsageError.nothing_named(sum(home.files for home in homes), f"runlake ingest --agents{''.join(switches)}")


def _terminated(*_: object) -> None:
    """Asked to end, an ingest (or compact) ends like on Ctrl-C: with its workers, and nothing half done."""
    raise SystemExit(143)


def _tell(done: IngestReport) -> None:
    """What the reader of the table would miss: files left out, and why."""
    for path, reason in done.problems:
        say(f"could not read {path}: {reason}")
    reasons: dict[str, list[str]] = {}
    for path, reason in done.skipped:
        reasons.setdefault(reason, []).append(path)
    for reason, paths in reasons.items():
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        say(f"skipped {paths[0]}{more}: {reason}")


def _closing(done: IngestReport) -> dict[str, Any]:
    """The closing table of an ingest."""
    facts: dict[str, Any] = {
        f"files_{what}": getattr(done, f"files_{what}")
        for what in ("new", "grown", "rewritten", "unchanged", "gone", "copied", "refused")
    }
    facts |= {"files_skipped": len(done.skipped)} | {
        name: getattr(done, name) for name in ("files_ignored", "lines", "events")
    }
    refusals: dict[str, int] = done.refusals_by_reason
    facts |= {"refusals": sum(refusals.values()), "refusals_by_reason": refusals}
    facts |= {
        name: getattr(done, name) for name in ("blank_lines", "pending_tails", "redactions", "bytes_in", "bytes_out")
    }
    return facts | {"duration_ms": round(done.seconds * 1000), "version": done.version}


def check(
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Runs every check of queries/checks over the lake. Exits 1 if one finds a row, and prints those rows."""
    import pyarrow as pa

    output = Output(format_, out, formulas)
    found: dict[str, list[dict[str, Any]]] = {}
    with opened(lake, at) as source:
        for name, relation in source.check().items():
            found[name] = relation.to_arrow_table().to_pylist()
        paths = _paths(source, found)
    for name, rows in found.items():
        for row in rows[:FAILURES_TOLD]:
            say(f"{name}: {_facts(row, paths)}")
        if len(rows) > FAILURES_TOLD:
            say(f"{name}: and {len(rows) - FAILURES_TOLD:,} more; `runlake sql 'FROM check_{name}'` has them all")
    results = ["failed" if rows else "ok" for rows in found.values()]
    counts = [len(rows) for rows in found.values()]
    emit(pa.table({"check": list(found), "result": results, "rows": counts}), output)
    if any(counts):
        raise typer.Exit(1)


def _paths(lake: Lake, found: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """The paths of the sources that the rows to be told name."""
    from analytics.sqlfiles import quoted

    told = [row.get("source_id") for rows in found.values() for row in rows[:FAILURES_TOLD]]
    ids = ", ".join(sorted({quoted(source) for source in told if source is not None})) or "NULL"
    return dict(lake.sql(f"SELECT source_id, path FROM sources WHERE source_id IN ({ids})").fetchall())


def _facts(row: dict[str, Any], paths: dict[str, str]) -> str:
    """A row of a check as a sentence part: the source by its path, then what else it says."""
    from analytics.values import plain, scalar

    said = {name: scalar(plain(value)) for name, value in row.items() if value is not None}
    source = said.get("source_id")
    if source in paths:
        said = {"source": said.pop("path", paths[source]), **{k: v for k, v in said.items() if k != "source_id"}}
    return ", ".join(f"{name} {value}" for name, value in said.items())


def history(
    lake: LakeOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """One row per version of the lake, newest first. `--at VERSION` on other commands reads an older one."""
    import pyarrow as pa

    from analytics.api import open_lake

    emit(pa.Table.from_pylist(open_lake(lake_path(lake)).history()), Output(format_, out, formulas))


def compact(
    lake: LakeOption = None,
    vacuum: Annotated[
        bool,
        typer.Option(
            "--vacuum", help="Also delete files no longer used for a week; older versions may become unreadable."
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option("--facts/--no-facts", help="Compute and keep what reports build on, where the lake is local."),
    ] = True,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Writes many small files anew as few large ones. Readers go on undisturbed; says what it saved.

    Then it computes and keeps what reports build on, in the lake's folder _facts, so that the first report over the new
    version is as fast as the later ones.
    """
    from analytics.commands.facts import as_rows
    from analytics.lake import Store

    output = Output(format_, out, formulas)
    signal.signal(signal.SIGTERM, _terminated)
    store, saved = Store.open(lake_path(lake)).compact()
    facts: dict[str, Any] = {
        "files_before": saved.files_before, "files_after": saved.files_after,
        "bytes_before": saved.bytes_before, "bytes_after": saved.bytes_after,
    }  # fmt: skip
    if vacuum:
        facts["files_deleted"] = len(store.vacuum_orphans()) + len(store.vacuum_replaced())
    emit(as_rows(facts | {"version": store.version}, output), output)
    if keep:
        from analytics.keeping import keep_facts

        problem = keep_facts(store, say)
        if problem is not None:
            say(problem)
