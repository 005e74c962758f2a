"""What must hold of any bytes whatsoever, asked of many inputs at once.

Each batch is read whole by one worker, and again in two pieces by another whose block and chunk sizes are odd. What
fails is narrowed down to the inputs that fail alone, or else to the few that fail together.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from helpers import can_grow, ledger_row

from analytics import api, blocks, catalog, feeding, open_lake
from analytics.ingest import ingest
from analytics.refusals import REASONS
from analytics.schema import END_RULES, KINDS, TOPICS, USAGE_SCOPES, arrow_schema
from analytics.tasks import FileRecord, ReadTask, Settings
from analytics.wires.base import MAX_TOKENS
from analytics.worker import work

INGEST_ID = "20260101T000000000000Z-000000"
FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999, as readers know them
COUNTERS = (
    "input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens",
    "reasoning_tokens",
)  # fmt: skip
WORDS = {
    "kind": set(KINDS), "usage_scope": set(USAGE_SCOPES), "end_rule": set(END_RULES),
    "decision": {"allow", "deny", "replace", "abstain", "ask"}, "limit_unit": {"fraction", "percent"},
    "run_id_origin": {"wire", "parent", "source"}, "ts_origin": {"vendor", "host", "harness"},
}  # fmt: skip
KEPT = ("source_id", "line", "byte_offset", "payload", "raw")
ORDER = {
    "event": ("source_id", "line", "part"),
    "refusal": ("source_id", "line", "byte_offset", "part", "reason"),
}


@dataclass(slots=True)
class Finding:
    """Something that should hold and does not, and the inputs that show it."""

    what: str
    inputs: list[tuple[int, bytes]]
    trace: str = ""

    @property
    def signature(self) -> str:
        """Equal for what is most likely one fault."""
        return self.what.splitlines()[0][:160] if self.what else ""


@dataclass(slots=True)
class Read:
    """What one worker made of many sources."""

    records: dict[str, FileRecord] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)


class Broken(AssertionError):
    """A promise that an input breaks."""


def read(folder: Path, tasks: list[ReadTask], wire: str | None, *, redact: bool) -> Read:
    """The files, read by one worker."""
    out = Path(tempfile.mkdtemp(dir=folder))
    try:
        result = work(tasks, Settings(str(out), INGEST_ID, wire=wire, redact=redact), 1, lambda _octets, _lines: None)
        made = Read({record.source_id: record for record in result.records})
        for record in ("event", "refusal"):
            schema = arrow_schema(record)
            some = [pq.ParquetFile(out / file.relative).read() for file in result.files if file.record == record]
            for one in some:
                if one.schema.remove_metadata() != schema.remove_metadata():
                    raise Broken(f"the {record} columns do not fit the schema")
            made.tables[record] = pa.concat_tables([schema.empty_table(), *some])
        return made
    finally:
        shutil.rmtree(out)


def source_id(number: int) -> str:
    return f"{number:016x}"


class Batch:
    """Inputs and where they stand."""

    def __init__(self, folder: Path, inputs: dict[int, bytes], wire: str | None) -> None:
        self.folder, self.inputs, self.wire = folder, inputs, wire
        self.paths = {number: folder / f"{number}.jsonl" for number in inputs}

    def tasks(self, priors: dict[str, FileRecord] | None = None) -> list[ReadTask]:
        tasks = []
        for number, path in self.paths.items():
            record = (priors or {}).get(source_id(number))
            row = record.row | {"wire": record.wire, "status": record.status} if record is not None else None
            prior = row if row is not None and row["status"] == "read" and can_grow(row) else None
            tasks.append(ReadTask(str(path), source_id(number), prior))
        return tasks

    def check(self, seed: int, *, redact: bool) -> int:
        """Raises Broken; returns of how many inputs a beginning was taken for another format, or another run."""
        for number, data in self.inputs.items():
            self.paths[number].write_bytes(data)
        whole = read(self.folder, self.tasks(), self.wire, redact=redact)
        check_values(whole)
        check_bytes(whole, self.inputs, redact=redact)
        rng = Random(seed)
        cuts = {number: Random(f"{seed} {number}").randrange(len(data) + 1) for number, data in self.inputs.items()}
        size, chunk = rng.choice((64, 1000, 1 << 20)), rng.choice((1, 3, 32))
        with mock.patch.object(feeding, "BLOCK_BYTES", size), mock.patch.object(blocks, "CHUNK_LINES", chunk):
            for number, data in self.inputs.items():
                self.paths[number].write_bytes(data[: cuts[number]])
            first = read(self.folder, self.tasks(), self.wire, redact=redact)
            for number, data in self.inputs.items():
                self.paths[number].write_bytes(data)
            second = read(self.folder, self.tasks(first.records), self.wire, redact=redact)
        return compare(whole, first, second)


def compare(whole: Read, first: Read, second: Read) -> int:
    """Two pieces are as good as the whole. Inputs that a beginning shows as another format are left out and counted."""
    otherwise = {
        name
        for name, record in whole.records.items()
        if second.records[name].went_on
        and (is_otherwise(record, first.records[name]) or has_beginning(record, second.records[name]))
    }
    otherwise |= refused_beginnings(whole, first, second)
    went_on = pa.array([name for name, record in second.records.items() if record.went_on], pa.string())
    for name, record in whole.records.items():
        if name in otherwise:
            continue
        other = second.records[name]
        pairs = {"status": (record.status, other.status), "wire": (record.wire, other.wire)}
        if record.status == "read":
            ours, theirs = (ledger_row(one.row | {"status": one.status, "source_id": name}) for one in (record, other))
            pairs |= {column: (ours[column], theirs[column]) for column in ours}
        wrong = {column: pair for column, pair in pairs.items() if pair[0] != pair[1]}
        if wrong:
            raise Broken(f"in two pieces the ledger says otherwise: {', '.join(wrong)}\n{wrong}")
    for record, order in ORDER.items():
        before, after, right = first.tables[record], second.tables[record], whole.tables[record]
        before = before.filter(pc.is_in(before["source_id"], went_on))
        made = pa.concat_tables([before, after])
        skipped = pa.array(sorted(otherwise), pa.string())
        made, right = (one.filter(pc.invert(pc.is_in(one["source_id"], skipped))) for one in (made, right))
        made, right = (one.sort_by([(name, "ascending") for name in order]).combine_chunks() for one in (made, right))
        if not made.equals(right):
            raise Broken(f"in two pieces the {record} rows differ: {difference(made, right)}")
    return len(otherwise)


def is_otherwise(whole: FileRecord, begun: FileRecord) -> bool:
    """A beginning looked like another format (which only the user could know)."""
    return (whole.wire, whole.row.get("shape")) != (begun.wire, begun.row.get("shape"))


def has_beginning(whole: FileRecord, grown: FileRecord) -> bool:
    """Rows that name no run came before the first that does, and were read before it: they are a run of their own
    until the views give them to it (run_pieces.is_beginning).
    """
    said = [str(record.row.get("resume_state")) + str(record.row.get("runs")) for record in (whole, grown)]
    is_made_up = [f"-{whole.source_id}" in text or '"":' in text for text in said]
    return is_made_up == [False, True] or first_unnamed(grown) < first_unnamed(whole)


def first_unnamed(record: FileRecord) -> float:
    """The first line of a run whose name is made from its source; infinite where all runs are named."""
    pieces = record.row.get("runs") or ()
    made_up = [piece["first_line"] for piece in pieces if piece["run_id"].endswith(f"-{record.source_id}")]
    return min(made_up, default=float("inf"))


def refused_beginnings(whole: Read, *pieces: Read) -> set[str]:
    """The same, where all that a beginning held was refused."""

    def made_up(read: Read) -> set[str]:
        rows = read.tables["refusal"].select(["source_id", "run_id"]).to_pylist()
        return {row["source_id"] for row in rows if row["run_id"] and row["run_id"].endswith(row["source_id"])}

    return set().union(*map(made_up, pieces)) - made_up(whole)


def difference(made: pa.Table, right: pa.Table) -> str:
    """The columns that differ, and the first place."""
    if made.num_rows != right.num_rows:
        return f"row count\n{made.num_rows} rows, {right.num_rows} when read whole"
    for name in right.column_names:
        ours, theirs = made[name].to_pylist(), right[name].to_pylist()
        if ours != theirs:
            at = next(n for n, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            where = right.select(["line", "part"]).slice(at, 1).to_pylist()
            return f"column {name}\nat {where}: {ours[at]!r}, {theirs[at]!r} when read whole"
    return "but no value does"


def check_values(made: Read) -> None:
    """Every column holds what schema.py says it holds, within what readers can read."""
    events, refusals = made.tables["event"], made.tables["refusal"]
    events.validate(full=True)
    refusals.validate(full=True)
    for name, allowed in WORDS.items():
        found = set(pc.unique(events[name]).to_pylist()) - {None} - allowed
        if found:
            raise Broken(f"{name} holds unknown words\n{found}")
    topics = {word for text in pc.unique(events["speaks"]).to_pylist() if text for word in text.split(" ")}
    if topics - set(TOPICS):
        raise Broken(f"speaks holds unknown topics\n{topics}")
    reasons = set(pc.unique(refusals["reason"]).to_pylist()) - {one.name for one in REASONS}
    if reasons:
        raise Broken(f"refused for unknown reasons\n{reasons}")
    for name in COUNTERS:
        within(events, name, 0, MAX_TOKENS)
    for name in ("ts", "limit_resets_at"):
        within(events, name, FIRST_MICROS, LAST_MICROS)
    for name in ("run_id", "event", "kind"):
        if events[name].null_count:
            raise Broken(f"{name} is NULL")
    for text in pc.unique(events["attributes"]).to_pylist():
        if text is not None and not isinstance(json.loads(text), dict):
            raise Broken("attributes are no JSON object")


def within(table: pa.Table, name: str, low: int, high: int) -> None:
    column = table[name]
    found = pc.min_max(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).as_py()
    if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
        raise Broken(f"{name} is out of range\n{found}")


def check_bytes(made: Read, inputs: dict[int, bytes], *, redact: bool) -> None:
    """Every line is counted once, and with nothing redacted the rows give the bytes back."""
    events, refusals = defaultdict(list), defaultdict(list)
    for row in made.tables["event"].select(KEPT).to_pylist():
        events[row["source_id"]].append(row)
    for row in made.tables["refusal"].to_pylist():
        refusals[row["source_id"]].append(row)
    for number, data in inputs.items():
        name = source_id(number)
        record = made.records[name]
        if record.status != "read":
            if events[name]:
                raise Broken(f"a source that is {record.status} has events")
            if record.status == "refused" and len(refusals[name]) != 1:
                raise Broken("a source refused whole is not one refusal")
            if record.status == "unreadable":
                raise Broken(f"unreadable: {record.reason}")
            continue
        source = ledger_row(record.row | {"status": record.status, "source_id": name})
        check_counts(source, events[name], refusals[name])
        if source["bytes_read"] + source["pending_bytes"] != len(data):
            raise Broken("bytes in are not bytes read and pending")
        if not redact:
            check_places(source, events[name], refusals[name], data)


def check_counts(source: dict[str, Any], events: list[dict[str, Any]], refusals: list[dict[str, Any]]) -> None:
    """Conservation: lines in = lines of events, of refusals, blank ones and a pending tail."""
    event_lines = {row["line"] for row in events}
    refused_lines = {row["line"] for row in refusals if row["line"] is not None} - event_lines
    blank_lines = [blank["line"] for blank in source["blanks"] or ()]
    right = {
        "event_lines": len(event_lines), "events": len(events), "refused_lines": len(refused_lines),
        "refusals": len(refusals), "blank_lines": len(blank_lines),
        "lines": len(event_lines) + len(refused_lines) + len(blank_lines) + (source["pending_bytes"] > 0),
    }  # fmt: skip
    wrong = {name: (source[name], value) for name, value in right.items() if source[name] != value}
    if wrong:
        raise Broken(f"the ledger counts otherwise: {', '.join(wrong)}\n{wrong}")
    every = sorted([*event_lines, *refused_lines, *blank_lines])
    if every != list(range(1, len(every) + 1)):
        raise Broken("line numbers have a hole, or a line is of two kinds")
    if sum(piece["events"] for piece in source["runs"]) != len(events):
        raise Broken("the pieces of runs do not add up to the events")


def check_places(
    source: dict[str, Any], events: list[dict[str, Any]], refusals: list[dict[str, Any]], data: bytes
) -> None:
    """The bytes of each row stand where it says, and between them nothing but line ends, blanks and the skeleton."""
    found = [(row["byte_offset"], row["payload"].encode()) for row in events if row["payload"] is not None]
    found += [(row["byte_offset"], row["raw"]) for row in events if row["payload"] is None and row["raw"] is not None]
    found += [(row["byte_offset"], row["raw"]) for row in refusals if row["line"] is not None]
    left, at = [], 0
    for offset, text in sorted(found):
        if offset < at or data[offset : offset + len(text)] != text:
            raise Broken("a row's bytes do not stand where it says")
        left.append(data[at:offset])
        at = offset + len(text)
    left.append(data[at:])
    bom = b"\xef\xbb\xbf" if source["has_bom"] else b""
    if source["skeleton"] is not None:
        if [left[0].removeprefix(bom), *left[1:]] != source["skeleton"].encode().split(b"\0"):
            raise Broken("the skeleton is not what stands between the events")
        return
    rest = b"".join(left).replace(b"\n", b"")
    if rest != bom + b"".join(blank["text"] for blank in source["blanks"] or ()) + (source["tail"] or b""):
        raise Broken("the rows do not give the bytes back")


def search(
    folder: Path, inputs: dict[int, bytes], wire: str | None, seed: int, *, redact: bool
) -> tuple[list[Finding], int]:
    """What is wrong with any of the inputs, and how many beginnings could not be compared."""
    try:
        return [], Batch(folder, inputs, wire).check(seed, redact=redact)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        numbers = sorted(inputs)
        found: list[Finding] = []
        if len(numbers) > 1:
            half = len(numbers) // 2
            for some in (numbers[:half], numbers[half:]):
                found += search(folder, {n: inputs[n] for n in some}, wire, seed, redact=redact)[0]
        return found or [Finding(_said(error), sorted(inputs.items()), traceback.format_exc())], 0


def _said(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].name}"
    return str(error) if isinstance(error, Broken) else f"{type(error).__name__} in {where}: {error}"


def search_lake(
    folder: Path, inputs: dict[int, bytes], known: Collection[str] = (), *, is_thorough: bool = False
) -> list[Finding]:
    """The inputs in one lake: it takes them, its checks hold, and reports can be made; all of them if `is_thorough`.

    Making the inputs fewer costs many lakes, so it is not done for what is `known`.
    """
    try:
        check_lake(folder, inputs, is_thorough=is_thorough)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        found = Finding(_said(error), sorted(inputs.items()), traceback.format_exc())
        if found.signature not in known:
            found.inputs = sorted(
                shrink(folder, inputs, found.signature.split(":")[0], is_thorough=is_thorough).items()
            )
        return [found]
    return []


def shrink(folder: Path, inputs: dict[int, bytes], kind: str, *, is_thorough: bool) -> dict[int, bytes]:
    """Fewer inputs that fail alike: halves, then quarters, as long as one fails."""
    parts = 2
    while len(inputs) > 1 and parts <= min(len(inputs), 4):
        numbers = sorted(inputs)
        size = -(-len(numbers) // parts)
        for start in range(0, len(numbers), size):
            some = {n: inputs[n] for n in numbers[start : start + size]}
            try:
                check_lake(folder, some, is_thorough=is_thorough)
            except Exception as error:  # noqa: BLE001 (it only asks whether it fails alike)
                if _said(error).startswith(kind):
                    inputs, parts = some, 2
                    break
        else:
            parts *= 2
    return inputs


def check_lake(folder: Path, inputs: dict[int, bytes], *, is_thorough: bool = False) -> None:
    """Raises Broken. All reports and relations cost about a minute, whatever the lake holds: they are many."""
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        sources = root / "in"
        sources.mkdir()
        for number, data in inputs.items():
            (sources / f"{number}.jsonl").write_bytes(data)
        ingest(root / "lake", [sources], jobs=1)
        with open_lake(root / "lake") as lake:
            for name, relation in lake.check().items():
                rows = relation.fetchall()
                if rows:
                    raise Broken(f"the check {name} finds rows\n{len(rows)}: {rows[:5]}")
            reports = [*catalog.built_in()] if is_thorough else [*api.MAIN_REPORTS, "runs"]
            for name in [*reports, *(lake.exported if is_thorough else ("tool_calls", "transcript"))]:
                try:
                    (lake.report(name) if name in reports else lake.table(name)).fetchall()
                except Exception as error:
                    raise Broken(f"the report {name} fails: {type(error).__name__}\n{error}") from error
    finally:
        shutil.rmtree(root)
