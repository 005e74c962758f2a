"""Filling and keeping a lake: ingest, its checks, its history, and compaction."""
# ruff: noqa: PLC0415, FBT002 (a switch is a truth value)

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.commands.options import (
    FormatOption,
    FormulasOption,
    LakeOption,
    OutOption,
    Output,
    VersionOption,
    emit,
    lake_path,
    opened,
    say,
)
from analytics.errors import UsageError

if TYPE_CHECKING:
    from analytics.ingest import IngestReport

FAILURES_TOLD = 20


def ingest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH…", help="Files, folders, quoted globs, or - for stdin.", show_default=False),
    ] = None,
    lake: LakeOption = None,
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
    max_line_bytes: Annotated[
        int | None,
        typer.Option("--max-line-bytes", min=1024, metavar="BYTES", help="Longer lines are refused by name."),
    ] = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Reads streams into the lake, making it if needed. What was read before costs a stat; what grew is read on."""
    from analytics.commands.facts import as_rows
    from analytics.commands.progress import Bar
    from analytics.ingest import ingest as run
    from analytics.wires import BY_NAME

    if not paths:
        raise UsageError("Nothing to read was named. Give files, folders, a quoted glob, or - for stdin.")
    if wire is not None and wire not in BY_NAME:
        raise UsageError.unknown_name("wire", wire, list(BY_NAME))
    limits: dict[str, Any] = {} if max_line_bytes is None else {"max_line_bytes": max_line_bytes}
    with Bar() as progress:
        done = run(
            lake_path(lake), paths, jobs=jobs, wire=wire, redact=redact, progress=progress, **limits
        )
    _tell(done)
    output = Output(format_, out, formulas)
    emit(as_rows(_closing(done), output), output)
    if strict and (sum(done.refusals_by_reason.values()) or done.problems):
        raise typer.Exit(1)


def _tell(done: IngestReport) -> None:
    """What the reader of the table would miss: files left out, and why."""
    for problem in done.problems:
        say(f"could not read {problem if isinstance(problem, str) else ': '.join(str(part) for part in problem)}")
    reasons: dict[str, list[str]] = {}
    for path, reason in done.skipped:
        reasons.setdefault(reason, []).append(str(path))
    for reason, paths in reasons.items():
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        say(f"skipped {paths[0]}{more}: {reason}")


def _closing(done: IngestReport) -> dict[str, Any]:
    """The closing table of an ingest."""
    facts: dict[str, Any] = {
        f"files_{what}": getattr(done, f"files_{what}")
        for what in ("new", "grown", "rewritten", "unchanged", "gone", "copied", "refused")
    }
    facts |= {"files_skipped": len(done.skipped), "lines": done.lines, "events": done.events}
    facts |= {"refusals": sum(done.refusals_by_reason.values()), "refusals_by_reason": dict(done.refusals_by_reason)}
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
    failed = 0
    with opened(lake, at) as source:
        found = source.check()
        results = []
        for name, relation in found.items():
            rows = relation.to_arrow_table()
            results.append({"check": name, "result": "ok" if rows.num_rows == 0 else "failed", "rows": rows.num_rows})
            failed += rows.num_rows > 0
            for row in rows.slice(0, FAILURES_TOLD).to_pylist():
                say(f"{name}: {_facts(row)}")
            if rows.num_rows > FAILURES_TOLD:
                say(f"{name}: and {rows.num_rows - FAILURES_TOLD:,} more rows; `runlake sql` has them all")
    emit(pa.table({name: [result[name] for result in results] for name in ("check", "result", "rows")}), output)
    if failed:
        raise typer.Exit(1)


def _facts(row: dict[str, Any]) -> str:
    from analytics.export import plain, scalar
    from analytics.render import visible

    return ", ".join(f"{name} {visible(scalar(plain(value)))}" for name, value in row.items() if value is not None)


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
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Writes many small files anew as few large ones. Readers go on undisturbed; says what it saved."""
    from analytics.commands.facts import as_rows
    from analytics.lake import Store

    output = Output(format_, out, formulas)
    store, saved = Store.open(lake_path(lake)).compact()
    facts: dict[str, Any] = {
        "files_before": saved.files_before, "files_after": saved.files_after,
        "bytes_before": saved.bytes_before, "bytes_after": saved.bytes_after,
    }  # fmt: skip
    if vacuum:
        facts["files_deleted"] = len(store.vacuum_orphans()) + len(store.vacuum_replaced())
    emit(as_rows(facts | {"version": store.version}, output), output)
