"""Asking a lake: reports, SQL, one run, what was refused, and files for others."""
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from analytics.commands import options
from analytics.commands.options import (
    EngineOption,
    FormatOption,
    FormulasOption,
    LakeOption,
    MasterOption,
    OutOption,
    Output,
    RunOption,
    SinceOption,
    UntilOption,
    VersionOption,
    WhereOption,
    WireOption,
    emit,
    opened,
)
from analytics.commands.raw import export_raw
from analytics.errors import RunlakeError, UsageError


def report(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Which; none = the main ones.", show_default=False)
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="WHAT", help="Grouped by this, where the report can be.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    where: WhereOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    engine: EngineOption = "local",
    master: MasterOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Prints reports. `runlake reports` lists them.

    With several names, json is one object with an array per report, and csv, jsonl, parquet and html need -o FOLDER/.
    """
    from analytics.api import MAIN_REPORTS

    output = Output(format_, out, formulas)
    wanted = names or list(MAIN_REPORTS)
    if by and len(by) > 1:
        raise UsageError(
            f"A report is grouped by one thing at a time, not by {' and '.join(by)}. Give one --by, or group as you "
            'like with `runlake sql "FROM token_usage SELECT day, model, … GROUP BY ALL"`.'
        )
    grouping = by[0] if by else None
    with opened(lake, at, one_by_one=True, spark=options.spark_session(engine, master)) as source:
        filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
        rows = {name: source.report(name, grouping, where=where, **filters) for name in wanted}
        options.tell_left_out(source, **filters)
        if len(rows) == 1:
            emit(rows[wanted[0]], output, are_few=source.has_few_events)
        else:
            _emit_several(rows, output, are_few=source.has_few_events)


def _emit_several(rows: dict[str, Any], output: Output, *, are_few: bool) -> None:
    chosen = output.chosen
    if chosen in ("table", "md", "json"):
        from analytics.export import sink

        try:
            with sink(output.out) as to:
                for place, (name, relation) in enumerate(rows.items()):
                    if chosen == "json":
                        to.write((b"{" if place == 0 else b",\n") + f'"{name}":'.encode())
                    elif place:
                        to.write(b"\n")
                    options.emit_to(to, relation, output, title=name, are_few=are_few)
                to.write(b"}\n" if chosen == "json" else b"")
        except BrokenPipeError:
            raise options.hang_up() from None
        return
    if output.out is None or output.out.suffix:
        raise UsageError(f"Several reports as {chosen} need a folder: add -o FOLDER (its files are NAME.{chosen}).")
    _write_folder(rows, output.out, output, are_few=are_few)


def _write_folder(rows: dict[str, Any], folder: Path, output: Output, *, are_few: bool) -> None:
    from analytics.export import Options, write_folder

    for file, count in write_folder(rows, folder, Options(output.chosen, output.formulas), are_few=are_few):
        options.say(f"{file}: {count:,} rows")


def reports(format_: FormatOption = None, out: OutOption = None, formulas: FormulasOption = "escape") -> None:
    """What can be reported, and what one row of each is."""
    import pyarrow as pa

    from analytics import api

    listed = api.report_list()
    emit(pa.Table.from_pylist(listed), Output(format_, out, formulas))


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="SQL", help="One statement that reads.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the statement from this file; - is stdin.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    engine: EngineOption = "local",
    master: MasterOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Runs one query over the lake's relations, read-only and walled in: no other file, no setting, no network."""
    if (query is None) == (file is None):
        raise UsageError("Give one query: as an argument, or with -f FILE.")
    text = query if query is not None else _read(file or Path("-"))
    with opened(lake, at, spark=options.spark_session(engine, master)) as source:
        filters = {"since": since, "until": until, "wire": wire, "run": run}
        answer = source.sql(text, **filters)
        options.tell_left_out(source, **filters)
        emit(answer, Output(format_, out, formulas), are_few=source.has_few_events)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise RunlakeError.from_os("read", file, error) from error
    except UnicodeDecodeError:
        raise UsageError(f"The file {file} is not UTF-8 text. Give a file that holds one SQL statement.") from None


def runs(
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    where: WhereOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """One row per run: when, how it ended, what it used. Data formats have all columns of run_metrics."""
    output = Output(format_, out, formulas)
    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire}
    with opened(lake, at) as source:
        is_for_people = output.chosen in ("table", "md")
        rows = source.report("runs", where=where, **filters) if is_for_people else source.runs(where=where, **filters)
        options.tell_left_out(source, **filters)
        emit(rows, output, are_few=source.has_few_events)


def refused(
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    where: WhereOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """One row per refused line or file: where it stands, why, and its bytes. `schema reasons` explains the reasons."""
    with opened(lake, at) as source:
        filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
        rows = source.refused(where=where, **filters)
        options.tell_left_out(source, **filters)
        emit(rows, Output(format_, out, formulas))


def export(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RELATION]…", help="Which; none = all facts and metrics.", show_default=False),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            "--raw", metavar="SOURCE|RUN", help="Instead: the original lines of this source (path or id) or run."
        ),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """Writes relations to files, one each, for other tools; they are Parquet unless told, and need -o FOLDER.

    With --raw, writes the original lines of a source or run again, to -o FILE or stdout. Replaced secrets are counted
    on stderr. Exits 1 if bytes are missing, each place named: a lake keeps 1 MiB of a refused line, file or tail.
    """
    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
    if raw is not None:
        if names or format_ is not None or any(value is not None for value in filters.values()):
            raise UsageError("--raw writes one source or run as it was: it takes --lake, --at and -o, nothing else.")
        export_raw(raw, lake, at, out)
        return
    if out is None:
        raise UsageError("Exported files need a folder: add -o FOLDER (its files are RELATION.FORMAT).")
    with opened(lake, at, one_by_one=True) as source:
        rows = {name: source.table(name, **filters) for name in names or source.exported}
        options.tell_left_out(source, **filters)
        _write_folder(rows, out, Output(format_ or "parquet", out, formulas), are_few=source.has_few_events)
