"""What a lake says of some transcripts, asked once over one connection and kept as plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from analytics import Lake, open_lake

Row = dict[str, Any]

PARTS = (
    "uncached_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "output_tokens",
    "reasoning_tokens",
)
EVENTS = """
    SELECT
        e.run_id, e.wire, s.path, e.line, e.part, e.ts, e.kind, e.event, e.call_id, e.status, e.exit_code, e.is_error,
        e.reason, e.model, e.duration_ms, e.agent_id, e.turn_id, e.attributes
    FROM events AS e JOIN sources AS s ON s.source_id = e.source_id
    ORDER BY s.path, e.line, e.part
"""
LIMITS = """
    SELECT run_id, limit_id, window_minutes, used_percent, epoch_us(resets_at) // 1000000 AS resets_at, status
    FROM limit_samples ORDER BY coalesce(epoch_us(ts), 0), position
"""
WINDOWS = "SELECT *, epoch_us(resets_at) // 1000000 AS resets FROM rate_limit_windows"
FILES = "SELECT wire, path, status, status_reason, lines, event_lines, refused_lines, pending_bytes FROM sources"


def added(values: Iterable[Any]) -> Any:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Answers:
    """The public relations of one lake, or of those of its runs that `keep` takes."""

    def __init__(self, lake: Lake, keep: Callable[[str], bool] | None = None, all_of: Answers | None = None) -> None:
        self.lake, self.keep, self.all_of = lake, keep, all_of
        self.asked: dict[str, list[Row]] = {}

    @classmethod
    def of(cls, folder: Path, *batches: list[Path], name: str = "lake") -> Answers:
        """A new lake, and the batches of paths ingested one after the other."""
        lake = open_lake(folder / name, create=True)
        for batch in batches:
            lake.ingest(batch)
        return cls(lake)

    def only(self, keep: Callable[[str], bool]) -> Answers:
        """The rows of some runs, by run id; nothing is asked again."""
        return Answers(self.lake, keep, self)

    def rows(self, query: str) -> list[Row]:
        if query not in self.asked:
            if self.all_of is not None:
                assert self.keep is not None
                rows = [row for row in self.all_of.rows(query) if row.get("run_id") is None or self.keep(row["run_id"])]
            else:
                found = self.lake.sql(query)
                rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
            self.asked[query] = rows
        return self.asked[query]

    @property
    def metrics(self) -> list[Row]:
        return self.rows("FROM run_metrics ORDER BY run_id")

    @property
    def runs(self) -> list[Row]:
        return self.rows("FROM runs ORDER BY run_id")

    @property
    def usage(self) -> list[Row]:
        return self.rows("FROM usage ORDER BY run_id, position")

    @property
    def observed(self) -> list[Row]:
        return self.rows("FROM usage_observations ORDER BY run_id, position")

    @property
    def calls(self) -> list[Row]:
        return self.rows("FROM tool_calls ORDER BY run_id, position")

    @property
    def decisions(self) -> list[Row]:
        return self.rows("FROM decisions ORDER BY run_id, position")

    @property
    def turns(self) -> list[Row]:
        return self.rows("FROM turns ORDER BY run_id, position")

    @property
    def samples(self) -> list[Row]:
        return self.rows(LIMITS)

    @property
    def windows(self) -> list[Row]:
        return self.rows(WINDOWS)

    @property
    def events(self) -> list[Row]:
        return self.rows(EVENTS)

    @property
    def refusals(self) -> list[Row]:
        return self.rows("SELECT path, line, reason, run_id FROM refusals ORDER BY path, line")

    @property
    def files(self) -> list[Row]:
        return self.rows(FILES)

    @property
    def by_model(self) -> list[Row]:
        return self.rows("FROM token_usage_by_model")

    @property
    def by_day(self) -> list[Row]:
        return self.rows("FROM token_usage_by_day")

    @cached_property
    def metric(self) -> dict[str, Row]:
        return {row["run_id"]: row for row in self.metrics}

    @cached_property
    def run(self) -> dict[str, Row]:
        return {row["run_id"]: row for row in self.runs}

    def counted(self) -> list[Row]:
        return [row for row in self.metrics if row["is_counted"]]

    def total(self, column: str) -> Any:
        """A figure over all runs that count."""
        return added(row[column] for row in self.counted())

    def by_run(self, column: str) -> dict[str, Any]:
        return {row["run_id"]: row[column] for row in self.counted()}

    def states(self, state: str, run: str | None = None) -> set[str]:
        """The calls that stand in a state."""
        return {row["call_id"] for row in self.calls if row["state"] == state and (run is None or row["run_id"] == run)}

    def denied(self, run: str | None = None) -> dict[str, dict[str, set[str]]]:
        """What is written of each refused call: evidence and reasons."""
        made: dict[str, dict[str, set[str]]] = {}
        for row in self.decisions:
            if row["decision"] == "deny" and (run is None or row["run_id"] == run):
                one = made.setdefault(row["call_id"], {"evidence": set(), "reasons": set()})
                one["evidence"].add(row["evidence"])
                one["reasons"].add(row["reason"])
        return made

    def sums_disagree(self) -> list[Any]:
        """What by run, by day and by model do not agree on."""
        wrong = []
        for column in ("input_tokens", *PARTS):
            sums = (
                self.total(column),
                added(row[column] for row in self.by_model if not row["is_side_call"]),
                added(row[column] for row in self.by_day),
            )
            if len(set(sums)) > 1:
                wrong.append((f"{column} by run, model, day", *sums))
        return wrong
