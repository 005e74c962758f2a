"""What the driver and the worker function tell each other: files to read, how, and what that gave.

Apart from the worker, since a driver whose workers are other processes need not load what reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analytics.lakefiles import WrittenFile
from analytics.limits import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, MAX_RATIO


@dataclass(frozen=True, slots=True)
class Settings:
    """How to read; the same for every file of one ingest."""

    lake: str
    ingest_id: str
    wire: str | None = None
    redact: bool = True
    max_line_bytes: int = MAX_LINE_BYTES
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    max_ratio: int = MAX_RATIO
    attempt: str = ""  # part of the files' names, where a task may run twice at once


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One file to read. `prior`: the ledger row to go on from, where the file only grew. `size_bytes`: as planned."""

    path: str
    source_id: str
    prior: dict[str, Any] | None = None
    size_bytes: int = 0


@dataclass(slots=True)
class FileRecord:
    """What reading one file gave: the ledger columns, and whether it went on behind the prior rows.

    status: read, refused, skipped; or unreadable, which is no state of the lake, so the next ingest tries again.
    """

    path: str
    source_id: str
    wire: str = "unknown"
    status: str = "read"
    reason: str | None = None
    row: dict[str, Any] = field(default_factory=dict)
    went_on: bool = False
    refusals_by_reason: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What one call of `work` gave."""

    files: list[WrittenFile]
    records: list[FileRecord]
