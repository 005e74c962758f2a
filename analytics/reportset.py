"""Several reports at once, for the formats that hold many: which they are, and what belongs to them beside rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.catalog import Catalog
from analytics.ownreports import naming
from analytics.rows import Rows, rows_of

if TYPE_CHECKING:
    from analytics.api import Lake
    from analytics.sqlfiles import SqlFile

# reports with a row per event, as large as the lake: only where they are asked for by name
LARGE = frozenset({"transcript"})


@dataclass(frozen=True, slots=True)
class Report:
    """One report, asked but not yet fetched."""

    name: str
    title: str
    row: str
    rows: Rows


def all_reports(catalog: Catalog | None = None) -> list[str]:
    """The names of all reports but the large ones, ungrouped: the built-in ones, then one's own."""
    return [row["report"] for row in (catalog or Catalog()).listed() if row["report"] not in LARGE]


def checked(names: Sequence[str], catalog: Catalog) -> Sequence[str]:
    """The names, or a usage error for the first that is neither a report nor a relation."""
    for name in names:
        catalog.file(name)
    return names


def described(name: str, relation: Any, lake: Lake) -> Report:
    """The rows of a report with what the head of its file says."""
    file = lake.catalog.file(name)
    rows = rows_of(relation, are_few=lake.has_few_events)
    if name in lake.catalog.own:
        rows = Rows(rows.fields, _told(rows.batches, file))
    return Report(name, file.title, file.row, rows)


def _told(batches: Iterator[list[list[Any]]], file: SqlFile) -> Iterator[list[list[Any]]]:
    """The batches; what fails while they are fetched is told with the file."""
    with naming(file):
        yield from batches


def ask(lake: Lake, name: str, filters: dict[str, Any], values: Mapping[str, Any] | None = None) -> Report:
    """One report of the lake by its name; a grouped one is called NAME_by_WHAT, and a relation will do, too."""
    return described(name, lake.report(name, set=values, **filters), lake)


def names_or_all(names: Sequence[str] | None, catalog: Catalog) -> list[str]:
    """The names, each once, or all reports."""
    return list(dict.fromkeys(names)) if names else all_reports(catalog)


def said(filters: dict[str, Any]) -> dict[str, str]:
    """The filters that are set, as text."""
    return {name: str(value) for name, value in filters.items() if value is not None}
