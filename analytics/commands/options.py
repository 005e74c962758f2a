"""The switches that commands share, and the one way rows leave a command."""
# ruff: noqa: PLC0415 — every command imports what it needs when it runs, so that `runlake --help` takes 0.1 s

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analytics.formats import Format, Formulas, format_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analytics.api import Lake

DEFAULT_LAKE = "lake"
LAKE_HELP = "The lake's folder, or s3://BUCKET/PREFIX; else RUNLAKE_LAKE, else ./lake."
ENGINES = ("local", "spark")

LakeOption = Annotated[
    str | None,
    typer.Option("--lake", metavar="DIR", help=LAKE_HELP, show_default=False),
]
VersionOption = Annotated[
    int | None, typer.Option("--at", metavar="VERSION", help="Read this version of the lake (see history).")
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format", help="How rows are written; else what the suffix of -o says, else a table.", show_default=False
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
]
FormulasOption = Annotated[
    Formulas,
    typer.Option("--csv-formulas", help="In csv, disarm text a spreadsheet or terminal would act on, or leave it raw."),
]
ReportsOption = Annotated[
    Path | None,
    typer.Option("--reports", metavar="DIR", help="A folder of your own reports (.sql); else RUNLAKE_REPORTS."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of a report of your own.", show_default=False),
]
WireOption = Annotated[str | None, typer.Option("--wire", metavar="NAME", help="Only runs of this wire.")]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only this run.")]
_WHEN = "a date, an ISO 8601 time (UTC unless it says otherwise), or an age such as 36h, 7d, 2w"
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="WHEN", help=f"Only runs that began then or later: {_WHEN}.")
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="WHEN", help="Only runs that began before then; a date means to its end."),
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Only rows for which this SQL condition on the columns holds."),
]

EngineOption = Annotated[
    str, typer.Option("--engine", metavar="local|spark", help="What does the work; spark needs runlake[spark].")
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="With --engine spark: local[2], spark://HOST:7077, or sc://HOST of Connect."
    ),
]


class State:
    """What the switches before the command said."""

    lake: str | None = None
    reports: Path | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The output switches of one command."""

    format: Format | None
    out: Path | None
    formulas: Formulas

    @property
    def chosen(self) -> Format:
        """The format rows will have."""
        return format_of(self.format, self.out)


def lake_path(given: str | None) -> str:
    """Where the lake is: --lake, else RUNLAKE_LAKE, else ./lake."""
    return given or State.lake or os.environ.get("RUNLAKE_LAKE") or DEFAULT_LAKE


def opened(
    given: str | None, version: int | None = None, *, one_by_one: bool = False, reports: Path | None = None,
    many: bool = False, spark: SparkSession | None = None,
) -> Lake:  # fmt: skip
    """The lake, for reading. The engine's own walls always stand; only the Python API goes without.

    `one_by_one`: the command reads each answer to its end before it begins the next. `many`: it asks so many
    questions that what they build on is worth keeping whatever the lake's size. `spark` answers instead of DuckDB.
    """
    from analytics.api import open_lake

    return open_lake(
        lake_path(given), version=version, sandboxed=True, one_by_one=one_by_one,
        reports=reports or State.reports, keep="facts" if many else None, spark=spark,
    )  # fmt: skip


def spark_session(engine: str, master: str | None) -> SparkSession | None:
    """The Spark session that --engine and --master ask for; None for the local engine."""
    from analytics.errors import UsageError

    if engine not in ENGINES:
        raise UsageError.unknown_name("engine", engine, list(ENGINES))
    if engine == "local":
        if master is not None:
            raise UsageError("--master names a Spark master: add --engine spark.")
        return None
    from analytics.engines.spark.connecting import connect

    return connect(master)


def say(text: str) -> None:
    """One line for the person, on stderr: stdout belongs to data."""
    from analytics.render import visible

    print(visible(text), file=sys.stderr)  # noqa: T201


def tell_left_out(source: Lake, **filters: Any) -> None:
    """What the filters leave out without a word, on stderr."""
    if any(value is not None for value in filters.values()):
        told = source.left_out(**filters)
        if told:
            say(told)


def emit(rows: Any, output: Output, *, title: str | None = None, are_few: bool = False) -> int:
    """Writes rows where the switches say; the number of rows. `title` stands above them in table and md.

    `are_few`: the rows of the relation may stand in memory all at once.
    """
    from analytics.export import sink

    guard_terminal(output)
    try:
        with sink(output.out) as to:
            return emit_to(to, rows, output, title=title, are_few=are_few)
    except BrokenPipeError:
        raise hang_up() from None


def emit_to(to: Any, rows: Any, output: Output, *, title: str | None = None, are_few: bool = False) -> int:
    """Writes rows to an open stream."""
    from analytics.export import Options, write

    if title and output.chosen == "md":
        to.write(f"## {title}\n\n".encode())
    elif title and output.chosen == "table":
        to.write(f"{title}\n".encode())
    return write(rows, Options(output.chosen, output.formulas), to, note=say, are_few=are_few)


def write_folder(
    rows: dict[str, Any], folder: Path, output: Output, *, are_few: bool, naming: Callable[[str], Any]
) -> None:
    """Writes one file per relation, and says each. `naming`: what surrounds the writing of each, by its name."""
    from analytics.export import Options, write_folder

    written = write_folder(rows, folder, Options(output.chosen, output.formulas), are_few=are_few, naming=naming)
    for file, count in written:
        say(f"{file}: {count:,} rows")


def guard_terminal(output: Output) -> None:
    """Parquet is bytes; a terminal would beep them."""
    from analytics.errors import UsageError

    if output.chosen == "parquet" and output.out is None and sys.stdout.isatty():
        raise UsageError("Parquet does not go to a terminal. Add -o FILE, or pipe it on.")


def hang_up() -> typer.Exit:
    """The reader of stdout has gone (`| head`): say nothing, and leave as SIGPIPE would."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(141)


Progress = Callable[..., None]
