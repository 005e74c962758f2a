"""What an ingest tells: how far it is, and in the end what it did."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from analytics.discover import Discovery
    from analytics.planning import Plan


class Progress(Protocol):
    """Told how far the reading is, a few times a second."""

    def __call__(self, *, bytes_done: int, bytes_total: int, lines: int, seconds: float) -> None:
        """Bytes and lines read so far, bytes to read in all, seconds since the start."""


@dataclass(slots=True)
class IngestReport:
    """What an ingest did. Lines, events and refusals are those read now, not those of the whole lake."""

    version: int = 0
    ingest_id: str = ""
    files_new: int = 0
    files_grown: int = 0
    files_rewritten: int = 0
    files_unchanged: int = 0
    files_gone: int = 0
    files_copied: int = 0
    files_refused: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    files_ignored: int = 0
    lines: int = 0
    events: int = 0
    refusals_by_reason: dict[str, int] = field(default_factory=dict)
    blank_lines: int = 0
    pending_tails: int = 0
    redactions: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0

    def close(self, discovery: Discovery, todo: Plan, version: int, *, read_now: Collection[str]) -> None:
        """What holds at the end. `read_now`: paths this ingest has read itself; a later plan found them unchanged."""
        self.version = version
        self.files_unchanged = sum(found.path not in read_now for found in (*todo.unchanged, *todo.touched))
        self.files_gone = len(todo.gone)
        self.files_ignored = discovery.ignored
        for problem in discovery.problems:
            into = self.problems if problem.is_error else self.skipped
            into.append((problem.path, problem.reason))
        self.problems = list(dict.fromkeys(self.problems))  # who plans twice meets the same twice
