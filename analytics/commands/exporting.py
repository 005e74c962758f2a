"""`runlake export`: relations and reports as files for other tools."""
# ruff: noqa: PLC0415, FBT002 (a switch is a truth value)

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from analytics.commands import options
from analytics.commands.options import (
    FormulasOption,
    LakeOption,
    OutOption,
    ReportsOption,
    RunOption,
    SetOption,
    SinceOption,
    UntilOption,
    VersionOption,
    WireOption,
    opened,
)
from analytics.commands.raw import export_raw
from analytics.errors import UsageError
from analytics.ownreports import settings, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.api import Lake
    from analytics.catalog import Catalog
    from analytics.formats import Format
    from analytics.reportset import Report


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be exported: names (None: all), filters, and parameters of reports of one's own."""

    names: list[str] | None
    filters: dict[str, Any]
    values: dict[str, str]

    def check_values(self, catalog: Catalog, *, takes_own: bool) -> None:
        """A usage error for a parameter that nothing of what is exported asks for."""
        own = catalog.own
        names = self.names or (own if takes_own else [])
        unknown(self.values, [own[name] for name in names if name in own])


ExportFormat = Literal["table", "json", "jsonl", "csv", "parquet", "md", "html", "xlsx", "openmetrics"]


def export(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…", help="Which relations (xlsx, --json: reports), or reports of your own; none = all.",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="DIR", help="A folder that is there whole or not at all, with manifest.json: "
            "Parquet, or csv if told.", show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --to: replace what is in the folder.")] = False,
    raw: Annotated[
        str | None,
        typer.Option(
            "--raw", metavar="SOURCE|RUN", help="Instead: the original lines of this source (path or id) or run."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Instead: reports as one JSON document with a schema_version.")
    ] = False,
    schema: Annotated[bool, typer.Option("--json-schema", help="Instead: the JSON Schema of that document.")] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    wire: WireOption = None,
    run: RunOption = None,
    set_: SetOption = None,
    own: ReportsOption = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format", help="Of the files (Parquet unless told); xlsx: reports as one workbook, to -o FILE.xlsx; "
            "openmetrics: figures as text for a scraper.", show_default=False,
        ),
    ] = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:  # fmt: skip
    """Writes relations to files, one each (-o FOLDER or --to DIR), or reports to one workbook, document or text.

    Named reports or all but transcript go into a workbook or document, those of --reports DIR among them; files hold
    one's own where they are named. With --raw, writes the original lines of a
    source or run again, to -o FILE or stdout. Replaced secrets are counted on stderr. Exits 1 if bytes are missing,
    each place named: a lake keeps 1 MiB of a refused line, file or tail.
    """
    filters: dict[str, Any] = {"since": since, "until": until, "wire": wire, "run": run}
    is_workbook = format_ == "xlsx" or (format_ is None and out is not None and out.suffix.lower() == ".xlsx")
    asked = {
        "--raw": raw is not None, "--json": as_json, "--json-schema": schema, "--to": to is not None,
        "--format openmetrics": format_ == "openmetrics", "--format xlsx": is_workbook,
    }  # fmt: skip
    forms = [form for form, is_asked in asked.items() if is_asked]
    if len(forms) > 1:
        raise UsageError(f"{' and '.join(forms)} are different exports. Give one of them.")
    form = forms[0] if forms else None
    if force and to is None:
        raise UsageError("--force is for --to DIR, whose contents it replaces.")
    if form in ("--raw", "--json-schema") and (
        names or format_ is not None or set_ or own or any(value is not None for value in filters.values())
    ):
        takes = "takes -o" if schema else "writes one source or run as it was: it takes --lake, --at and -o"
        raise UsageError(f"{form} {takes}, nothing else.")
    if as_json and format_ not in (None, "json"):
        raise UsageError(f"--json is one document, not {format_}. Leave --format out.")
    if raw is not None:
        export_raw(raw, lake, at, out)
    elif schema:
        from analytics.document import json_schema

        _write(out, lambda file: file.write(json_schema()))
    else:
        values = settings(set_ or [])
        with opened(lake, at, one_by_one=True, reports=own) as source:
            options.tell_left_out(source, **filters)
            wanted = Asked(names, filters, values)
            if as_json:
                _document(source, wanted, out)
            elif is_workbook:
                _workbook(source, wanted, out)
            elif format_ == "openmetrics":
                _openmetrics(source, wanted, out)
            elif to is not None:
                _folder(source, wanted, to, format_ or "parquet", formulas, out, force=force)
            else:
                _files(source, wanted, out, format_ or "parquet", formulas)


def _write(out: Path | None, write: Any) -> None:
    """Lets `write` write to the output file, or to stdout."""
    from analytics.export import sink

    try:
        with sink(out) as file:
            write(file)
    except BrokenPipeError:
        raise options.hang_up() from None


def _reports(source: Lake, asked: Asked) -> Iterator[Report]:
    """The reports, each asked when the one before was written. A name that is none is an error before the first."""
    from analytics.reportset import ask, checked, names_or_all

    wanted = checked(names_or_all(asked.names, source.catalog), source.catalog)
    asked.check_values(source.catalog, takes_own=True)
    return (ask(source, name, asked.filters, asked.values) for name in wanted)


def _document(source: Lake, asked: Asked, out: Path | None) -> None:
    import analytics
    from analytics.document import write_document
    from analytics.reportset import said

    reports = _reports(source, asked)
    facts: dict[str, Any] = {"runlake_version": analytics.__version__, "lake_version": source.version}
    facts["filters"] = said(asked.filters)
    if asked.values:
        facts["parameters"] = asked.values
    _write(out, lambda file: write_document(reports, facts, file))


def _workbook(source: Lake, asked: Asked, out: Path | None) -> None:
    import analytics
    from analytics.reportset import said
    from analytics.workbook import write_workbook

    if out is None and sys.stdout.isatty():
        raise UsageError("A workbook does not go to a terminal. Add -o FILE.xlsx.")
    reports = _reports(source, asked)
    facts = {"runlake": analytics.__version__, "lake version": str(source.version)} | said(asked.filters) | asked.values
    newest = source.sql("SELECT epoch_us(max(last_seen)) // 1000000 FROM sources").fetchall()[0][0]
    made_at = datetime.fromtimestamp(newest or 0, UTC)
    _write(out, lambda file: write_workbook(reports, facts, made_at, file))


def _openmetrics(source: Lake, asked: Asked, out: Path | None) -> None:
    import analytics
    from analytics.openmetrics import write_openmetrics

    if asked.names or asked.values:
        surplus = "the names" if asked.names else "--set"
        raise UsageError(f"The figures of --format openmetrics are fixed. Leave {surplus} out.")
    _write(out, lambda file: write_openmetrics(source, asked.filters, analytics.__version__, file))


def _folder(
    source: Lake, asked: Asked, to: Path, format_: str, formulas: Any, out: Path | None, *, force: bool
) -> None:  # fmt: skip
    import analytics
    from analytics.export import Options
    from analytics.exportfolder import export_folder

    if format_ not in ("parquet", "csv"):
        raise UsageError(f"--to writes a folder of parquet or csv, not of {format_}. Give --format parquet or csv.")
    if out is not None:
        raise UsageError("--to names the folder, -o another place. Give one of them.")
    chosen: Format = "csv" if format_ == "csv" else "parquet"
    for file, rows in export_folder(
        source, _relations(source, asked), to, Options(chosen, formulas), filters=asked.filters,
        runlake_version=analytics.__version__, force=force,
    ):  # fmt: skip
        options.say(f"{file}: {rows:,} rows")


def _files(source: Lake, asked: Asked, out: Path | None, format_: Any, formulas: Any) -> None:
    if out is None:
        raise UsageError("Exported files need a folder: add -o FOLDER (its files are RELATION.FORMAT).")
    output = options.Output(format_, out, formulas)
    rows = _relations(source, asked)
    options.write_folder(rows, out, output, are_few=source.has_few_events, naming=source.naming)


def _relations(source: Lake, asked: Asked) -> dict[str, Any]:
    """What becomes a file each: relations by their names, and those of one's own reports that are named."""
    asked.check_values(source.catalog, takes_own=False)
    return {
        name: source.report(name, set=asked.values, **asked.filters)
        if name in source.catalog.own
        else source.table(name, **asked.filters)
        for name in dict.fromkeys(asked.names or source.exported)
    }
