"""The Python door: `open_lake(path)` gives a `Lake`, and a lake answers with DuckDB relations.

A relation turns into what is at hand: `.pl()`, `.arrow()`, `.df()`, `.fetchall()`. It reads the version the lake was
opened at, however long it is kept; `lake.latest()` looks at the newest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from analytics import sqlfiles
from analytics.errors import UsageError
from analytics.lake import Store
from analytics.sqlrun import Filters, Session, relations

if TYPE_CHECKING:
    import duckdb

    from analytics.ingest import IngestReport

REPORT_LAYERS = ("reports", "metrics", "facts", "lake")
MAIN_REPORTS = ("coverage", "run_metrics", "denials", "rate_limit_windows")

_AGE = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

When = str | date | datetime


def open_lake(
    path: str | os.PathLike[str] = "lake", *, create: bool = False, version: int | None = None, sandboxed: bool = False
) -> Lake:
    """The lake at `path`. `create` makes one that is not there; `version` pins an older version of it."""
    store = Store.open(path, create=create, version=version)
    if version is None:
        store = store.refresh()
    return Lake(store, sandboxed=sandboxed)


class Lake:
    """One version of a lake. `ingest` moves the object on to the version it made; nothing else does."""

    def __init__(self, store: Store, *, sandboxed: bool = False) -> None:
        self.store = store
        self._sandboxed = sandboxed
        self._session: Session | None = None

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
    def tables(self) -> list[str]:
        """The names of all relations, from the lake's rows to the reports."""
        return list(relations())

    @property
    def exported(self) -> list[str]:
        """What `runlake export` writes unless told otherwise: all facts and metrics."""
        return [name for name, file in _reportable().items() if file.layer in ("facts", "metrics")]

    def sql(
        self, query: str, *, wire: str | None = None, run: str | None = None, since: When | None = None,
        until: When | None = None,
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """The rows of any query over the relations."""
        return self._open().relation(query, _filters(wire, run, since, until))

    def report(
        self, name: str, by: str | None = None, *, since: When | None = None, until: When | None = None,
        wire: str | None = None, run: str | None = None, where: str | None = None,
    ) -> duckdb.DuckDBPyRelation:  # fmt: skip
        """The rows of one report: a metric, a fact or a report of `queries/`, filtered to some runs."""
        query = report_sql(name, by)
        if where is not None:
            query = f"FROM (\n{query}\n)\nWHERE (\n{where}\n)"
        return self._open().relation(query, _filters(wire, run, since, until))

    def reports(self) -> list[dict[str, str]]:
        """What `report` can give: names, what a row of each is, and what they can be grouped by."""
        return report_list()

    def runs(self, **filters: Any) -> duckdb.DuckDBPyRelation:
        """One row per run, with its metrics."""
        return self.report("run_metrics", **filters)

    def show(self, run: str) -> duckdb.DuckDBPyRelation:
        """What happened in one run, in order."""
        return self.report("transcript", run=run)

    def refused(self, **filters: Any) -> duckdb.DuckDBPyRelation:
        """One row per refused line or file, with the reason and the bytes."""
        return self.report("refusals", **filters)

    def check(self) -> dict[str, duckdb.DuckDBPyRelation]:
        """The rows each check finds wrong, by check; a sound lake has none."""
        return {file.name: self._open().relation(_select(file)) for file in sqlfiles.in_layer("checks")}

    def ingest(
        self, *paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Any
    ) -> IngestReport:  # fmt: skip
        """Reads what is new at the paths (or lists of paths) into the lake, then looks at the version that has it."""
        from analytics.ingest import ingest  # noqa: PLC0415 (a reader needs no decoders)

        given: list[str] = []
        for path in paths:
            given += [os.fspath(path)] if isinstance(path, str | os.PathLike) else [os.fspath(one) for one in path]
        report = ingest(self.path, given, **options)
        self._move(self.store.latest())
        return report

    def latest(self) -> Lake:
        """The newest version."""
        return Lake(self.store.latest(), sandboxed=self._sandboxed)

    def snapshot(self, version: int) -> Lake:
        """An older (or newer) version, as it was."""
        return Lake(Store.open(self.path, version=version), sandboxed=self._sandboxed)

    def history(self) -> list[dict[str, Any]]:
        """One row per version, newest first."""
        return self.store.history()

    def close(self) -> None:
        """Gives memory and spill space back; relations of this lake can then no longer be fetched."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Session:
        if self._session is None:
            self._session = Session(self.store, sandboxed=self._sandboxed)
        return self._session

    def _move(self, store: Store) -> None:
        """Relations already given out keep the session they came from."""
        self.store, self._session = store, None


def _select(file: sqlfiles.SqlFile) -> str:
    """The query that gives a file's rows: of the relation it creates, or its own bare SELECT."""
    return f"FROM {file.relation}" if file.relation is not None else file.text.strip().rstrip(";")


@cache
def _reportable() -> dict[str, sqlfiles.SqlFile]:
    """By name, what `report` takes; of two layers that use one name, the one nearer to the reader."""
    return {file.name: file for layer in reversed(REPORT_LAYERS) for file in sqlfiles.in_layer(layer)}


def report_sql(name: str, by: str | None = None) -> str:
    """The query of a report, grouped as asked."""
    known = _reportable()
    file = known.get(name)
    if file is None:
        raise UsageError.unknown_name("report", name, list(known))
    if by is None:
        return _select(file)
    grouped = known.get(f"{name}_by_{by}")
    if grouped is None:
        prefix = f"{name}_by_"
        raise UsageError.unknown_name(
            f"grouping of {name} by", by, [n.removeprefix(prefix) for n in known if n.startswith(prefix)]
        )
    return _select(grouped)


def report_list() -> list[dict[str, str]]:
    """Name, layer, and what a row is, of everything `report` takes."""
    known = _reportable()
    return [
        {"report": name, "layer": file.layer, "one_row_is": file.row, "title": file.title}
        for name, file in sorted(known.items(), key=lambda item: (REPORT_LAYERS.index(item[1].layer), item[0]))
    ]


def moment(when: When, *, end: bool = False) -> datetime:
    """A point in time, UTC: a time, the begin (`end`: the end) of a day, or an age counted back from now."""
    if isinstance(when, datetime):
        return when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    if isinstance(when, date):
        return datetime.combine(when + timedelta(days=1) if end else when, time(), UTC)
    text = when.strip()
    age = _AGE.fullmatch(text)
    try:
        if age is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return moment(date.fromisoformat(text), end=end)
        return moment(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{when!r} is no time. Give a date (2026-09-01), a time (2026-09-01T12:00:00Z), or an age (36h, 7d)."
        ) from None


def _filters(wire: str | None, run: str | None, since: When | None, until: When | None) -> Filters:
    return Filters(
        wire=wire, run=run,
        since=None if since is None else moment(since),
        until=None if until is None else moment(until, end=True),
    )  # fmt: skip
