"""Reading made streams: by the worker alone (fast enough for properties), and through a whole lake."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analytics import open_lake
from analytics.ingest import ingest
from analytics.schema import RECORDS
from analytics.tasks import FileRecord, ReadTask, Settings
from analytics.wires import BY_NAME
from analytics.worker import work

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = FIXTURES / "samples"
CLAUDE = SAMPLES / "metaharness/claude-complete.jsonl"
CODEX = SAMPLES / "metaharness/codex-halted-unknown-event.jsonl"
TWO_RUNS = SAMPLES / "metaharness/two-runs-budget-and-torn.jsonl"
RECORDED = SAMPLES / "platonic-core/recorded-events-finished.jsonl"
LEDGER = SAMPLES / "platonic-core/ledger-v2-uncommitted-tail.jsonl"
CANCELED = SAMPLES / "platonic-core/canceled-then-refused-lines.jsonl"
GENERIC = SAMPLES / "harness-lab/generic-stdout.jsonl"
BLOCKED = SAMPLES / "harness-lab/events-claude-blocked.jsonl"
EXPORTED = SAMPLES / "harness-lab/events-export-two-runs-torn.jsonl"

# what two readings of one file must agree on; the rest of a ledger row is when and by whom it was read
LEDGER_COLUMNS = (
    "source_id",
    "shape",
    "status",
    "size_bytes",
    "compression",
    "bytes_read",
    "digest",
    "lines",
    "event_lines",
    "events",
    "refused_lines",
    "refusals",
    "blank_lines",
    "pending_bytes",
    "tail",
    "redactions",
    "has_bom",
    "ends_without_newline",
    "blanks",
    "skeleton",
    "runs",
    "resume_state",
)


@dataclass(slots=True)
class Reading:
    """What a file gave: event rows, refusal rows, and its ledger row."""

    events: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    source: dict[str, Any] = field(default_factory=dict)
    wire: str = "unknown"

    def reasons(self) -> list[tuple[int | None, str]]:
        """Line and reason of each refusal."""
        return [(row["line"], row["reason"]) for row in self.refusals]

    def comparable(self) -> tuple[Any, ...]:
        """All of it."""
        return self.wire, self.events, self.refusals, self.source


class Reader:
    """The worker, one file at a time; what it writes goes to a folder of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = Settings(str(folder), "20260101T000000000000Z-000000", **settings)
        self.number = 0

    def read(
        self, path: Path, prior: FileRecord | None = None, before: Reading | None = None
    ) -> tuple[FileRecord, Reading]:
        """Read a file, or read it on behind what `prior` says; then the rows are those of `before` and the new ones."""
        self.number += 1
        row = prior.row | {"wire": prior.wire, "status": prior.status} if prior is not None else None
        task = ReadTask(str(path), "0123456789abcdef", row if row is not None and can_grow(row) else None)
        result = work([task], self.settings, self.number, lambda _octets, _lines: None)
        record = result.records[0]
        made = Reading(wire=record.wire)
        if record.went_on and before is not None:
            made.events, made.refusals = list(before.events), list(before.refusals)
        for file in result.files:
            rows = pq.ParquetFile(self.folder / file.relative).read().to_pylist()
            getattr(made, f"{file.record}s").extend(rows)
        made.source = ledger_row(record.row | {"status": record.status, "source_id": record.source_id})
        return record, made

    def grow(self, path: Path, data: bytes, cuts: list[int]) -> Reading:
        """The file as it grows: cut at each of `cuts`, then whole."""
        record, reading = None, None
        for end in [*sorted(cuts), len(data)]:
            path.write_bytes(data[:end])
            record, reading = self.read(path, record, reading)
        assert reading is not None
        return reading

    def clear(self) -> None:
        """Forget the files written so far."""
        for record in RECORDS:
            shutil.rmtree(self.folder / f"record={record}", ignore_errors=True)


def can_grow(row: dict[str, Any]) -> bool:
    """What the plan asks before a file is read on."""
    is_document = row["status"] == "read" and row["shape"] in BY_NAME[row["wire"]].documents
    return row["status"] == "read" and not (is_document or row["compression"] or row["ends_without_newline"])


def ledger_row(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a ledger row that do not depend on when it was read, in a form that compares."""
    made = {name: row.get(name) for name in LEDGER_COLUMNS}
    made["resume_state"] = json.loads(made["resume_state"]) if made["resume_state"] else None
    made["runs"] = sorted(made["runs"] or (), key=lambda piece: piece["run_id"])
    return made


def rebuild(reading: Reading) -> bytes:
    """The source's bytes, from its rows alone."""
    source = reading.source
    lines: dict[int, bytes] = {}
    for row in reading.events:
        if row["part"] == 0:
            assert row["line"] not in lines, f"line {row['line']} is there twice"
            lines[row["line"]] = row["raw"] if row["payload"] is None else row["payload"].encode()
    for row in reading.refusals:
        if row["line"] is not None:
            assert row["line"] not in lines, f"line {row['line']} is an event and a refusal"
            assert row["bytes"] == len(row["raw"]), "a refusal beyond the size limit gives no bytes back"
            lines[row["line"]] = row["raw"]
    if source["skeleton"] is not None:
        between = source["skeleton"].encode().split(b"\0")
        inside = [lines[n] for n in sorted(lines)]
        assert len(between) == len(inside) + 1
        bom = b"\xef\xbb\xbf" if source["has_bom"] else b""
        return bom + b"".join(a + b for a, b in zip(between, [*inside, b""], strict=True))
    for blank in source["blanks"] or ():
        assert blank["line"] not in lines
        lines[blank["line"]] = blank["text"]
    assert sorted(lines) == list(range(1, len(lines) + 1)), "line numbers have a hole"
    text = b"\n".join(lines[n] for n in sorted(lines))
    if lines and not source["ends_without_newline"]:
        text += b"\n"
    return (b"\xef\xbb\xbf" if source["has_bom"] else b"") + text + (source["tail"] or b"")


def check_conservation(reading: Reading) -> None:
    """Lines in = lines of events, of refusals, blank ones and a pending tail; every counter is what the rows say."""
    source, events, refusals = reading.source, reading.events, reading.refusals
    event_lines = {row["line"] for row in events}
    refused_lines = {row["line"] for row in refusals if row["line"] is not None} - event_lines
    assert source["event_lines"] == len(event_lines)
    assert source["events"] == len(events)
    assert source["refused_lines"] == len(refused_lines)
    assert source["refusals"] == len(refusals)
    assert source["blank_lines"] == len(source["blanks"] or ())
    pending = source["pending_bytes"] > 0
    assert source["lines"] == len(event_lines) + len(refused_lines) + source["blank_lines"] + pending
    assert sum(piece["lines"] for piece in source["runs"]) == len(event_lines)
    assert sum(piece["events"] for piece in source["runs"]) == len(events)
    said = [row for row in events if row["payload"] is not None or row["raw"] is not None]
    places = [(row["line"], row["byte_offset"]) for row in said]
    assert len(places) == len(set(places)), "the bytes of a record stand once, several records may stand on one line"
    for row in events:
        assert row["run_id"] is not None
        assert row["payload"] is None or row["raw"] is None
        assert row["part"] > 0 or row["payload"] is not None or row["raw"] is not None


class Lab:
    """A folder of sources and a lake beside it."""

    def __init__(self, folder: Path, name: str = "lake") -> None:
        self.folder = folder
        self.sources = folder / "in"
        self.sources.mkdir(parents=True, exist_ok=True)
        self.path = folder / name

    def write(self, name: str | bytes, data: bytes) -> Path:
        """A source file."""
        path = self.sources / (name if isinstance(name, str) else name.decode("utf-8", "surrogateescape"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def ingest(self, *paths: Any, **options: Any) -> Any:
        """Ingest the given paths, else the folder of sources."""
        return ingest(self.path, paths or [self.sources], **options)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query over the newest version."""
        with open_lake(self.path) as lake:
            return lake.sql(query).fetchall()

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The same, as dictionaries."""
        with open_lake(self.path) as lake:
            return lake.sql(query).pl().to_dicts()

    def metrics(self, *without: str) -> list[dict[str, Any]]:
        """run_metrics in order of the runs."""
        rows = self.rows("FROM run_metrics ORDER BY run_id")
        return [{name: value for name, value in row.items() if name not in without} for row in rows]

    def failed_checks(self) -> dict[str, list[tuple[Any, ...]]]:
        """What `runlake check` finds."""
        with open_lake(self.path) as lake:
            return {name: rows for name, found in lake.check().items() if (rows := found.fetchall())}

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything in the lake that does not depend on when, in how many steps and in which order it was read."""
        ledger = ", ".join(("wire", "path", "status_reason", "copy_of", *LEDGER_COLUMNS)).replace(
            "runs", "list_sort(runs)"
        )
        queries = {
            "events": "FROM stored_events ORDER BY source_id, line, part",
            "refusals": "FROM stored_refusals ORDER BY source_id, line, byte_offset, reason",
            "sources": f"SELECT {ledger} FROM sources ORDER BY source_id",
        }
        with open_lake(self.path) as lake:
            return {name: lake.sql(query).fetchall() for name, query in queries.items()}
