"""Several reports at once, for the formats that hold many: which they are, and what belongs to them beside rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from analytics.errors import UsageError
from analytics.rows import Rows, rows_of
from analytics.sqlfiles import SqlFile, in_layer, load

if TYPE_CHECKING:
    from analytics.api import Lake

# reports with a row per event, as large as the lake: only where they are asked for by name
LARGE = frozenset({"transcript"})


@dataclass(frozen=True, slots=True)
class Report:
    """One report, asked but not yet fetched."""

    name: str
    title: str
    row: str
    rows: Rows


def all_reports() -> list[str]:
    """The names of all reports but the large ones, ungrouped."""
    from analytics.api import report_list  # noqa: PLC0415 (loads duckdb)

    return [row["report"] for row in report_list() if row["report"] not in LARGE]


def checked(names: Sequence[str]) -> Sequence[str]:
    """The names, or a usage error for the first that is neither a report nor a relation."""
    for name in names:
        if name not in _files():
            raise UsageError.unknown_name("report", name, [file.name for file in in_layer("reports")])
    return names


def described(name: str, relation: Any, lake: Lake) -> Report:
    """The rows of a report with what the head of its file says."""
    file = _files()[name]
    return Report(name, file.title, file.row, rows_of(relation, are_few=lake.has_few_events))


def ask(lake: Lake, name: str, filters: dict[str, Any]) -> Report:
    """One report of the lake by its name; a grouped one is called NAME_by_WHAT, and a relation will do, too."""
    return described(name, lake.report(name, **filters), lake)


@cache
def _files() -> dict[str, SqlFile]:
    """Reports by their names, and relations by theirs where no report has it."""
    relations = {file.relation: file for file in load() if file.relation is not None}
    return relations | {file.name: file for file in in_layer("reports")}


def names_or_all(names: Sequence[str] | None) -> list[str]:
    """The names, each once, or all reports."""
    return list(dict.fromkeys(names)) if names else all_reports()


def said(filters: dict[str, Any]) -> dict[str, str]:
    """The filters that are set, as text."""
    return {name: str(value) for name, value in filters.items() if value is not None}
