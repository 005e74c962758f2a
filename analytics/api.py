"""The Python door: `open_lake(path)` gives a `Lake`, and a lake answers with DuckDB relations.

A relation turns into what is at hand: `.pl()`, `.arrow()`, `.df()`, `.fetchall()`. It reads the version the lake was
opened at, however long it is kept; `lake.latest()` looks at the newest.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from analytics import ownreports, sqlfiles
from analytics.catalog import Catalog, named_relations, ordered, select
from analytics.errors import UsageError
from analytics.formats import Format
from analytics.kept import Keep, worth_keeping
from analytics.lake import Store
from analytics.moments import When, moment
from analytics.relations import relations
from analytics.sqlrun import Filters, Session
from analytics.wires import BY_NAME

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

    from analytics.compaction import Saved
    from analytics.comparison_runs import Comparison
    from analytics.engines.spark.session import SparkQueries
    from analytics.ingestreport import IngestReport
    from analytics.rawexport import RawExport

MAIN_REPORTS = ("overview", "token_usage", "denials", "unfinished_by_tool", "rate_limits", "coverage")


def open_lake(
    path: str | os.PathLike[str] = "lake", *, create: bool = False, version: int | None = None,
    sandboxed: bool = False, one_by_one: bool = False, reports: str | os.PathLike[str] | None = None,
    keep: Keep | None = None, spark: SparkSession | None = None,
) -> Lake:  # fmt: skip
    """The lake at `path`. `create` makes one that is not there; `version` pins an older version of it.

    `one_by_one`: you read each answer to its end before you begin the next; answers with the same filters then share
    what they build on. `reports`: a folder of your own reports, else RUNLAKE_REPORTS. `keep`: what queries build on is
    computed once and kept, also over a lake of many events, since many questions follow. `spark`
    answers instead of DuckDB, with the same queries; the answers are DuckDB relations all the same.
    """
    store = Store.open(path, create=create, version=version)
    if version is None:
        store = store.refresh()
    folder = ownreports.folder_of(reports)
    return Lake(store, sandboxed=sandboxed, one_by_one=one_by_one, reports=folder, keep=keep, spark=spark)


class Lake:
    """One version of a lake. `ingest` and `compact` move the object on to the version they made; nothing else does."""

    def __init__(
        self, store: Store, *, sandboxed: bool = False, one_by_one: bool = False, reports: Path | None = None,
        keep: Keep | None = None, spark: SparkSession | None = None,
    ) -> None:  # fmt: skip
        self.store, self._spark = store, spark
        self._sandboxed, self._one_by_one, self._reports, self._keep = sandboxed, one_by_one, reports, keep
        self._session: Session | SparkQueries | None = None
        self._checking: Session | SparkQueries | None = None
        self._walled: Session | SparkQueries | None = None

    def __repr__(self) -> str:
        return f"Lake({str(self.path)!r}, version={self.version})"

    @property
    def path(self) -> Path:
        """The lake's folder."""
        return self.store.root

    @property
    def version(self) -> int:
        """The version every answer comes from."""
        return self.store.version

    @property
    def has_few_events(self) -> bool:
        """True: any answer about this version fits in memory."""
        return worth_keeping(self.store) != "nothing"

    def is_kept(self, name: str) -> bool:
        """True: a relation of this version was computed before, and is read."""
        session = self._open()
        return isinstance(session, Session) and session.is_kept(name)

    @property
    def tables(self) -> list[str]:
        """The names of all relations, from the lake's rows to the reports."""
        return list(relations())

    @property
    def exported(self) -> list[str]:
        """What `runlake export` writes unless told otherwise: all facts and metrics."""
        return [name for name, file in named_relations().items() if file.layer in ("facts", "metrics")]

    def sql(
        self, query: str, *, wire: str | None = None, run: str | None = None, since: When | None = None,
        until: When | None = None,
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """The rows of any query over the relations."""
        return self._open().relation(query, _filters(wire, run, since, until))

    @cached_property
    def catalog(self) -> Catalog:
        """The reports that can be asked for by name: built in, and one's own."""
        return Catalog(self._reports)

    def report(
        self, name: str, by: str | None = None, *, since: When | None = None, until: When | None = None,
        wire: str | None = None, run: str | None = None, where: str | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 (as the switch is called)
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """The rows of one report, or of a relation, filtered to some runs. `set`: parameters of one's own report."""
        file = self.catalog.file(name, by)
        filters = _filters(wire, run, since, until)
        if file.name not in self.catalog.own:
            return self._open().relation(ordered(file, where), filters)
        asked = {key: (kind.type, value) for key, kind, value in ownreports.bound(file, set or {})}
        with ownreports.naming(file):
            return self._walls().relation(ordered(file, where), filters, asked)

    def naming(self, name: str, by: str | None = None) -> AbstractContextManager[None]:
        """Inside of it, what goes wrong while the rows of one's own report are fetched is told with its file."""
        own = self.catalog.own.get(self.catalog.file(name, by).name)
        return nullcontext() if own is None else ownreports.naming(own)

    def chart(
        self, name: str, by: str | None = None, *, picture: int = 0, set: Mapping[str, Any] | None = None,  # noqa: A002
        **filters: Any,
    ) -> Any:  # fmt: skip
        """The picture of a report as an Altair chart (`runlake[report]`); `picture` counts where it has several."""
        from analytics.html.charts import chart_of  # noqa: PLC0415 (not for readers of relations)

        return chart_of(self.catalog.file(name, by), self.report(name, by, set=set, **filters), picture)

    def table(
        self, name: str, *, since: When | None = None, until: When | None = None, wire: str | None = None,
        run: str | None = None, where: str | None = None,
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """The rows of one relation of `tables`, also where a report has the same name."""
        known = named_relations()
        if name not in known:
            raise UsageError.unknown_name("relation", name, list(known))
        return self._open().relation(ordered(known[name], where), _filters(wire, run, since, until))

    def cost(
        self, by: str | Sequence[str] = "model", *, prices: str | os.PathLike[str] | None = None,
        since: When | None = None, until: When | None = None, wire: str | None = None, run: str | None = None,
        where: str | None = None,
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """What runs cost by list price (priced_cost_usd), beside what their vendor says (vendor_cost_usd).

        `by`: all, model, run, day, wire, adapter, task, variant, directory, reason, or several of them. `prices`: a
        CSV file whose lines stand before genai-prices (the extra `runlake[cost]`).
        """
        from analytics.cost import costs, price_list  # noqa: PLC0415 (not for readers of relations)

        found = costs(self, by, price_list(prices), since=since, until=until, wire=wire, run=run)
        return self.over(found.table, where)

    def over(self, rows: Any, where: str | None) -> duckdb.DuckDBPyRelation:
        """The rows of an Arrow table that meet a condition on its columns."""
        return self._open().over(rows, where)

    def left_out(
        self, *, since: When | None = None, until: When | None = None, wire: str | None = None, run: str | None = None
    ) -> str | None:
        """A sentence on what the filters leave out without a word: a run nobody knows, runs that have no time."""
        if wire is not None and wire not in BY_NAME:
            raise UsageError.unknown_name("wire", wire, list(BY_NAME))
        if run is not None and not self._count(
            f"SELECT count(*) FROM run_pieces WHERE run_id = {sqlfiles.quoted(run)}"
        ):
            return f"No run of this lake is called {run!r}; `runlake runs` lists them."
        if since is None and until is None:
            return None
        only = "" if wire is None else f"WHERE wire = {sqlfiles.quoted(wire)}"
        timeless = f"SELECT run_id FROM run_pieces {only} GROUP BY run_id HAVING max(first_ts) IS NULL"
        count = self._count(f"SELECT count(*) FROM ({timeless})")
        return f"{count:,} runs have no time on record, so --since and --until leave them out." if count else None

    def _count(self, query: str) -> int:
        ((count,),) = self._open().relation(query, Filters()).fetchall()
        return int(count)

    def reports(self) -> list[dict[str, Any]]:
        """What `report` can give: names, what a row of each is, and what it can be grouped by."""
        return self.catalog.listed()

    def runs(self, **filters: Any) -> duckdb.DuckDBPyRelation:
        """One row per run, with its metrics."""
        return self.table("run_metrics", **filters)

    def compare(
        self, by: str, a: str, b: str, metrics: Sequence[str] | None = None, *, resamples: int = 2000, seed: int = 0,
        level: float = 0.95, where: str | None = None, **filters: Any,
    ) -> Comparison:  # fmt: skip
        """The runs whose `by` (variant, model, …) is `b` against those whose `by` is `a`, paired by task.

        `metrics`: names of `runlake compare --help`, else the main ones. `where` narrows the rows of comparable_runs.
        """
        from analytics.comparison import Settings  # noqa: PLC0415 (numpy, which no reader of relations needs)
        from analytics.comparison_runs import compare  # noqa: PLC0415

        settings = Settings(resamples, seed, level)
        return compare(self, by, a, b, metrics, settings, where=where, **filters)

    def show(self, run: str) -> duckdb.DuckDBPyRelation:
        """What happened in one run, in order."""
        return self.table("transcript", run=run)

    def refused(self, **filters: Any) -> duckdb.DuckDBPyRelation:
        """One row per refused line or file, with the reason and the bytes."""
        return self.table("refusals", **filters)

    def check(self) -> dict[str, duckdb.DuckDBPyRelation]:
        """The rows each check finds wrong, by check; a sound lake has none. From the events, not from what was kept."""
        if self._checking is None:
            self._checking = self._made(sandboxed=self._sandboxed, with_facts=False)
        checking = self._checking
        return {file.name: checking.relation(select(file)) for file in sqlfiles.in_layer("checks")}

    def export(
        self, folder: str | os.PathLike[str], *names: str, format: Format = "parquet", **filters: Any,  # noqa: A002
    ) -> list[Path]:  # fmt: skip
        """Writes relations (all facts and metrics, unless named) to a folder, one file each."""
        from analytics.export import Options, write_folder  # noqa: PLC0415 (not for readers of relations)

        rows = {name: self.table(name, **filters) for name in names or self.exported}
        return [file for file, _ in write_folder(rows, Path(folder), Options(format))]

    def write_raw(self, name: str, to: IO[bytes]) -> RawExport:
        """Writes the original lines of a source (path or source_id) or of a run again; says what is not as it was."""
        from analytics.rawexport import write_raw  # noqa: PLC0415 (not for readers of relations)

        return write_raw(self, name, to)

    def ingest(
        self, *paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], agents: bool = False, **options: Any
    ) -> IngestReport:  # fmt: skip
        """Reads what is new at the paths (or lists of paths) into the lake, then looks at the version that has it.

        `agents`: also what Claude Code and Codex keep in their homes.
        """
        from analytics.agents import find_homes  # noqa: PLC0415 (a reader needs no homes)
        from analytics.ingest import ingest  # noqa: PLC0415 (nor decoders)

        given: list[str] = []
        for path in paths:
            given += [os.fspath(path)] if isinstance(path, str | os.PathLike) else [os.fspath(one) for one in path]
        if agents:
            given += [home.folder for home in find_homes(wire=options.get("wire"))]
        report = ingest(self.path, given, **options)
        self._move(self.store.latest())
        return report

    def compact(self, *, facts: bool = True) -> Saved:
        """Writes many small files anew as few large ones, then looks at the version that has them.

        `facts`: what reports build on is then computed and kept, so that the first report reads it; a warning says
        what hinders that.
        """
        store, saved = self.store.compact()
        self._move(store)
        if facts:
            from analytics.keeping import keep_facts  # noqa: PLC0415 (not for readers of relations)

            problem = keep_facts(store)
            if problem is not None:
                warnings.warn(problem, stacklevel=2)
        return saved

    def latest(self) -> Lake:
        """The newest version."""
        return Lake(self.store.latest(), sandboxed=self._sandboxed, reports=self._reports, spark=self._spark)

    def snapshot(self, version: int) -> Lake:
        """An older (or newer) version, as it was."""
        store = Store.open(self.path, version=version)
        return Lake(store, sandboxed=self._sandboxed, reports=self._reports, spark=self._spark)

    def history(self) -> list[dict[str, Any]]:
        """One row per version, newest first."""
        return self.store.history()

    def close(self) -> None:
        """Gives memory and spill space back; relations of this lake can then no longer be fetched."""
        for session in (self._session, self._checking, self._walled):
            if session is not None:
                session.close()
        self._session = self._checking = self._walled = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Session | SparkQueries:
        if self._session is None:
            self._session = self._made(sandboxed=self._sandboxed)
        return self._session

    def _walls(self) -> Session | SparkQueries:
        """Where reports of one's own run: inside the sandbox, also where `sql` is not."""
        if self._sandboxed:
            return self._open()
        if self._walled is None:
            self._walled = self._made(sandboxed=True)
        return self._walled

    def _made(self, *, sandboxed: bool, with_facts: bool = True) -> Session | SparkQueries:
        if self._spark is not None:
            from analytics.engines.spark.session import SparkQueries  # noqa: PLC0415 (an extra)

            return SparkQueries(self.store, self._spark)
        keep = self._keep if with_facts else None
        return Session(self.store, sandboxed=sandboxed, one_by_one=self._one_by_one, keep=keep, with_facts=with_facts)

    def _move(self, store: Store) -> None:
        """Relations already given out keep the session they came from."""
        self.store, self._session, self._checking, self._walled = store, None, None, None


def report_list() -> list[dict[str, Any]]:
    """The built-in reports: name, what it can be grouped by, what a row is."""
    return Catalog().listed()


def _filters(wire: str | None, run: str | None, since: When | None, until: When | None) -> Filters:
    return Filters(
        wire=wire, run=run,
        since=None if since is None else moment(since),
        until=None if until is None else moment(until, end=True),
    )  # fmt: skip
