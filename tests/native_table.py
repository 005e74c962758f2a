"""A table of public reports of wrong counts: a small input for each, the wrong number it led to, and the right one.

All inputs of a table are read into one lake, a folder each; a question is then asked of the runs of one folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from native_make import File
from native_read import Answers, added

from analytics import open_lake

Ask = Callable[[Answers], Any]


@dataclass(frozen=True)
class Report:
    """One report. `make` gets a prefix for every id, so that no two inputs of a lake share one."""

    number: int
    where: str
    wrong: str
    make: Callable[[str], dict[str, File | bytes]]
    ask: Ask
    naive: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.number} {self.where}"

    @property
    def folder(self) -> str:
        return f"r{self.number:02}"


class Table:
    """The inputs of all reports, read at once."""

    def __init__(self, folder: Path, reports: list[Report]) -> None:
        root = folder / "in"
        for report in reports:
            for name, file in report.make(report.folder).items():
                path = root / report.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file if isinstance(file, bytes) else file.data)
        self.lake = open_lake(folder / "lake", create=True)
        self.lake.ingest(root)
        self.all = Answers(self.lake)

    def answers(self, report: Report) -> Answers:
        """What the lake says of one report's runs."""
        here = f"/in/{report.folder}/"
        runs = {row["run_id"] for row in self.all.events if here in row["path"]}
        return self.all.only(runs.__contains__)

    def files(self, report: Report) -> list[dict[str, Any]]:
        return [row for row in self.all.files if f"/in/{report.folder}/" in row["path"]]


def total(column: str) -> Ask:
    """A figure over the runs that count."""
    return lambda a: a.total(column)


def totals(*columns: str) -> Ask:
    return lambda a: tuple(a.total(column) for column in columns)


def each(column: str) -> Ask:
    """A figure of each run that counts, by what its id says behind the prefix."""
    return lambda a: {run.split("-", 1)[-1]: value for run, value in a.by_run(column).items()}


def by(name: str, column: str) -> Ask:
    """A figure of the usage by day or by model."""

    def ask(a: Answers) -> Any:
        kept = [row for row in a.usage if row["is_counted"]]
        names = sorted({str(row[name]) for row in kept})
        return {one: added(row[column] for row in kept if str(row[name]) == one) for one in names}

    return ask


def counted_runs(a: Answers) -> int:
    return len(a.counted())


def tools(a: Answers) -> list[str]:
    return sorted(row["tool"] for row in a.calls)


def lower_bound(a: Answers) -> tuple[Any, Any]:
    """Whether a report says that a figure may be higher, and of how many requests."""
    return added(row.get("requests_not_final") for row in a.counted()), any(
        row["tokens_are_lower_bound"] for row in a.counted()
    )


def limits(*columns: str) -> Ask:
    """The samples of limits, in order; None where the stream cannot speak of limits."""

    def ask(a: Answers) -> Any:
        if all(row["rate_limit_samples"] is None for row in a.metrics):
            return None
        return [tuple(row[column] for column in columns) for row in a.samples]

    return ask


def reasons(a: Answers) -> dict[str, str]:
    """Refused calls, by what refused them."""
    kinds = {call.split("-", 1)[-1]: found["reasons"] for call, found in a.denied().items()}
    return {call: min(found - {"listed"} or found) for call, found in kinds.items()}


def unfinished(a: Answers) -> set[str]:
    return {call.split("-", 1)[-1] for call in a.states("unfinished")}


def output_by_result(a: Answers) -> list[int]:
    """What each result of a capture adds."""
    lines = sorted({row["line"] for row in a.usage})
    return [sum(row["output_tokens"] for row in a.usage if row["line"] == line) for line in lines]
