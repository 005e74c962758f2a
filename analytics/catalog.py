"""What can be asked by name: the built-in reports, one's own beside them, and the relations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from analytics import ownreports, sqlfiles
from analytics.errors import UsageError
from analytics.sqlfiles import SqlFile

# a report has its own order, a metric that of its columns unless said otherwise here, a fact none but these
ORDERS = {
    "run_metrics": "started_at NULLS LAST, run_id",
    "runs": "started_at NULLS LAST, run_id",
    "denials": "denied_calls DESC, tool, evidence, decided_by, reason",
    "tool_calls": "run_id, requested_at NULLS LAST, call_id, call_occurrence",
    "events": "run_id, position",
    "transcript": "run_id, position",
    "refusals": "path, line NULLS FIRST, part",
    "sources": "path, source_id",
}


@cache
def named_relations() -> dict[str, SqlFile]:
    """The files that create a relation a query can name, by that name."""
    return {file.relation: file for file in sqlfiles.load() if file.relation is not None}


@cache
def built_in() -> dict[str, SqlFile]:
    """The reports of `queries/reports`, by name."""
    return {file.name: file for file in sqlfiles.in_layer("reports")}


@dataclass(frozen=True)
class Catalog:
    """The reports of one call: the built-in ones, and those in the folder `own`."""

    folder: Path | None = None
    own: dict[str, SqlFile] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None:
            self.own.update(ownreports.load(self.folder, [*built_in(), *named_relations()]))

    @cached_property
    def reports(self) -> dict[str, SqlFile]:
        """All of them, by name; `NAME_by_X` is NAME grouped by X."""
        return built_in() | self.own

    def groupings(self, name: str) -> list[str]:
        """What a report can be grouped by: it has a file for each."""
        prefix = f"{name}_by_"
        return sorted(other.removeprefix(prefix) for other in self.reports if other.startswith(prefix))

    def file(self, name: str, by: str | None = None) -> SqlFile:
        """The file of a report, grouped; a relation that no report is named after will do, too."""
        file = self.reports.get(name) or named_relations().get(name)
        if file is None:
            raise UsageError.unknown_name("report", name, list(self.reports))
        if by is None:
            return file
        if by not in self.groupings(name):
            raise UsageError.unknown_name(f"grouping of {name} by", by, self.groupings(name))
        return self.reports[f"{name}_by_{by}"]

    def listed(self) -> list[dict[str, Any]]:
        """The reports: name, what it can be grouped by, what a row is."""
        grouped = {f"{name}_by_{by}" for name in self.reports for by in self.groupings(name)}
        return [
            {"report": name, "by": self.groupings(name), "one_row_is": file.row, "title": file.title}
            for name, file in self.reports.items()
            if name not in grouped
        ]


def select(file: SqlFile) -> str:
    """The query that gives a file's rows: of the relation it creates, or its own bare SELECT."""
    return f"FROM {file.relation}" if file.relation is not None else file.text.strip().rstrip(";")


def ordered(file: SqlFile, where: str | None) -> str:
    """The rows of a file that meet the condition, in an order that is the same each time."""
    query = select(file)
    if where is not None and not where.strip():
        raise UsageError('The condition of --where is empty. Give one on the report\'s columns, such as "runs > 1".')
    if where is not None:
        query = f"FROM (\n{query}\n)\nWHERE (\n{where}\n)"
    order = None if file.layer == "reports" else ORDERS.get(file.name, "ALL" if file.layer == "metrics" else None)
    return query if order is None else f"{query}\nORDER BY {order}"
