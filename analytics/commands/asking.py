"""Asking a lake: reports, SQL, one run, what was refused, and files for others."""
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    ReportsOption,
    RunOption,
    SetOption,
    SinceOption,
    UntilOption,
    VersionOption,
    WhereOption,
    WireOption,
    emit,
    opened,
)
from analytics.errors import RunlakeError, UsageError
from analytics.ownreports import folder_of, settings, unknown

if TYPE_CHECKING:
    from analytics.api import Lake


def report(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Which; none = the main ones.", show_default=False)
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="WHAT", help="Grouped by this, where the report can be.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", metavar="N", min=1, help="In md: a summary with N rows of each.", show_default=False),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    where: WhereOption = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write one page with pictures: all reports, or those named."),
    ] = None,
    set_: SetOption = None,
    own: ReportsOption = None,
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
    With none or with --top, md is a summary for a pull request: 10 (or N) rows of each report and what is unknown.
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
    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
    values = settings(set_ or [])
    if html is not None:
        if format_ is not None or out is not None or top is not None:
            raise UsageError("--html FILE says what is written and where: give it without --format, --top and -o.")
        with opened(lake, at, one_by_one=True, reports=own, many=True) as source:
            _check_values(source, values, names, grouping)
            options.tell_left_out(source, **filters)
            write_page(source, html, names, grouping, filters=filters, where=where, values=values)
        return
    is_summary = output.chosen == "md" and (top is not None or not names)
    if top is not None and not is_summary:
        raise UsageError('--top is for --format md. In other formats use --where, or `runlake sql "… LIMIT 10"`.')
    with opened(lake, at, one_by_one=True, reports=own, spark=options.spark_session(engine, master)) as source:
        _check_values(source, values, wanted, grouping)
        rows = {name: source.report(name, grouping, where=where, set=values, **filters) for name in wanted}
        options.tell_left_out(source, **filters)
        if is_summary:
            _summarize(source, rows, grouping, top, filters, output)
        elif len(rows) == 1:
            with source.naming(wanted[0], grouping):
                emit(rows[wanted[0]], output, are_few=source.has_few_events)
        else:
            _emit_several(source, rows, grouping, output)


def _check_values(source: Any, values: dict[str, str], names: list[str] | None, by: str | None) -> None:
    if values:
        catalog = source.catalog
        unknown(values, [catalog.file(name, by) for name in names] if names else [*catalog.own.values()])


def write_page(
    source: Any, out: Path, names: list[str] | None, by: str | None, *, filters: dict[str, Any], where: str | None,
    values: dict[str, str],
) -> None:  # fmt: skip
    """Writes the reports as one page, and says so."""
    from analytics.html.page import Question, write_report

    size = write_report(source, out, names or [], by, Question(filters, where, values))
    options.say(f"{out}: {size:,} bytes")


def _summarize(
    source: Lake, rows: dict[str, Any], by: str | None, top: int | None, filters: dict[str, Any], output: Output
) -> None:
    """The reports as one bounded Markdown text."""
    import analytics
    from analytics.export import inert_markdown, sink
    from analytics.reportset import ask, described, said
    from analytics.summary import QUALITY, TOP, write_summary

    only = "".join(f", {name} {inert_markdown(value)}" for name, value in said(filters).items())
    head = f"# runlake report\n\nVersion {source.version} of the lake, runlake {analytics.__version__}{only}."
    reports = (described(name if by is None else f"{name}_by_{by}", made, source) for name, made in rows.items())
    quality = ask(source, QUALITY, filters)
    try:
        with sink(output.out) as to:
            write_summary(reports, quality, head, top or TOP, to)
    except BrokenPipeError:
        raise options.hang_up() from None


def _emit_several(source: Lake, rows: dict[str, Any], by: str | None, output: Output) -> None:
    chosen, are_few = output.chosen, source.has_few_events
    if chosen in ("table", "md", "json"):
        from analytics.export import sink

        try:
            with sink(output.out) as to:
                for place, (name, relation) in enumerate(rows.items()):
                    if chosen == "json":
                        to.write((b"{" if place == 0 else b",\n") + f'"{name}":'.encode())
                    elif place:
                        to.write(b"\n")
                    with source.naming(name, by):
                        options.emit_to(to, relation, output, title=name, are_few=are_few)
                to.write(b"}\n" if chosen == "json" else b"")
        except BrokenPipeError:
            raise options.hang_up() from None
        return
    if output.out is None or output.out.suffix:
        raise UsageError(f"Several reports as {chosen} need a folder: add -o FOLDER (its files are NAME.{chosen}).")
    options.write_folder(rows, output.out, output, are_few=are_few, naming=lambda name: source.naming(name, by))


def reports(
    own: ReportsOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """What can be reported, and what one row of each is."""
    import pyarrow as pa

    from analytics.catalog import Catalog

    listed = Catalog(folder_of(own or options.State.reports)).listed()
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
