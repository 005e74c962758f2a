"""A lake of a few runs written as Parquet from a list of runs, without an ingest: what the queries are tested on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.schema import RECORDS, arrow_schema
from analytics.sqlrun import Filters, Session

PAYLOAD = "{}"  # of an event line that gives none
REFUSED_BYTES = 9  # of every refused one
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds):
    return None if seconds is None else DAY + timedelta(seconds=seconds)


def built(spec, number, offset, row):
    """An event row of a line, with defaults, and its further parts."""
    base = {"source_id": spec["source"], "line": number, "run_id": spec["run"], "run_id_origin": "wire"}
    own = {key: value for key, value in row.items() if key != "parts"}
    own = {"payload": PAYLOAD, "byte_offset": offset, "redactions": 0} | own
    rows = []
    for part, values in enumerate([own, *row.get("parts", [])]):
        one = base | {"part": part, "event": own.get("event", own["kind"])} | values
        one["ts"] = moment(own.get("ts"))
        one["limit_resets_at"] = moment(values.get("limit_resets_at"))
        if "attributes" in values:
            one["attributes"] = json.dumps(values["attributes"], separators=(",", ":"))
        rows.append(one)
    return rows


def read_fixture(specs):
    """Rows of the three records by wire, as an ingest of the runs would write them."""
    rows = {record: {} for record in RECORDS}
    sources = {}
    by_source = {spec["source"]: spec for spec in specs if "rows" in spec}
    for said in specs:
        spec = by_source[said["copy_of_source"]] | {"source": said["source"]} if "copy_of_source" in said else said
        wire, source_id = spec["wire"], spec["source"]
        source = sources.setdefault(source_id, {
            "wire": wire, "source_id": source_id, "revision": 1, "path": f"/streams/{source_id}.jsonl",
            "status": "read", "lines": 0, "bytes_read": 0, "event_lines": 0, "events": 0, "refused_lines": 0,
            "refusals": 0, "blank_lines": 0, "pending_bytes": 0, "runs": [], "began_at": None,
        })  # fmt: skip
        if spec.get("pending_bytes"):
            source["pending_bytes"] = spec["pending_bytes"]
        first = source["lines"] + 1
        good = []
        for number, row in enumerate(spec["rows"], first):
            source["lines"] += 1
            offset = source["bytes_read"]
            source["bytes_read"] += (REFUSED_BYTES if "refused" in row else len(row.get("payload", PAYLOAD))) + 1
            if "refused" in row:
                refusal = {
                    "source_id": source_id,
                    "path": source["path"],
                    "line": number,
                    "part": 0,
                    "bytes": REFUSED_BYTES,
                }
                refusal |= {"byte_offset": offset}
                refusal |= {"reason": row["refused"], "run_id": row.get("run_id", spec["run"])}
                rows["refusal"].setdefault(wire, []).append(refusal)
                source["refused_lines"] += 1
                source["refusals"] += 1
                continue
            seq = spec["seq"] + number - first if "seq" in spec else row.get("seq")
            some = built(spec, number, offset, {"seq": seq} | row)
            rows["event"].setdefault(wire, []).extend(some)
            good.append(some)
        seqs = [some[0]["seq"] for some in good if some[0]["seq"] is not None]
        times = [some[0]["ts"] for some in good if some[0]["ts"] is not None]
        if source["began_at"] is None and times:
            source["began_at"] = times[0]
        totals = [
            (event.get("input_tokens") or 0) + (event.get("output_tokens") or 0)
            for some in good
            for event in some
            if event.get("usage_scope") == "cumulative" and event.get("usage_key") is not None
        ]
        source["event_lines"] += len(good)
        source["events"] += sum(map(len, good))
        source["runs"].append({
            "run_id": spec["run"], "first_line": good[0][0]["line"], "last_line": good[-1][0]["line"],
            "lines": len(good), "events": sum(map(len, good)),
            "first_seq": min(seqs, default=None), "last_seq": max(seqs, default=None),
            "seq_breaks": sum(b != a + 1 for a, b in pairwise(seqs)) if seqs else None,
            "first_ts": min(times, default=None), "last_ts": max(times, default=None),
            "running_total": max(totals, default=None),
            "digest": spec.get("digest", json.dumps(spec["rows"])), "is_shared": spec.get("is_shared", False),
        })  # fmt: skip
    for source in sources.values():
        source["lines"] += source["pending_bytes"] > 0
        rows["source"].setdefault(source["wire"], []).append(source)
    return rows


def write_lake(folder: Path, specs) -> dict[str, list[str]]:
    """Hive-partitioned Parquet; every record kind has at least a file without rows. Gives the files by kind."""
    files = {}
    for record, by_wire in read_fixture(specs).items():
        schema = arrow_schema(record)
        files[record] = []
        for wire, rows in {"unknown": [], **by_wire}.items():
            place = folder / f"record={record}" / f"wire={wire}"
            place.mkdir(parents=True)
            table = pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in rows], schema)
            pq.write_table(table, place / "part.parquet")
            files[record].append(str(place / "part.parquet"))
    return files


def opening(files) -> list[str]:
    settings = ["SET TimeZone = 'UTC'", "SET parquet_metadata_cache = true"]
    return settings + [f"SET VARIABLE {record}_files = {paths!r}" for record, paths in files.items()]


class Stored:
    """What a session of queries asks of a lake's store: the files of a record kind, and how much they hold."""

    def __init__(self, by_kind: dict[str, list[str]], rows: int = 0) -> None:
        self.by_kind = by_kind
        self.row_count = rows
        self.root = Path(by_kind["event"][0]).parent

    def extent(self, *records: str) -> tuple[int, int]:
        return self.row_count, sum(Path(file).stat().st_size for record in records for file in self.by_kind[record])

    def files(self, record: str) -> list[str]:
        return self.by_kind[record]


class Lake:
    """The relations of queries/ over some runs, as the product asks them."""

    def __init__(self, folder: Path, specs, rows: int = 0) -> None:
        self.session = Session(Stored(write_lake(folder, specs), rows), sandboxed=False)

    def rows(self, sql: str, **filters) -> list[dict]:
        found = self.session.relation(sql, Filters(**filters))
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def by_run(self, relation: str, *columns: str, **filters) -> dict:
        """Some columns of a relation by run; the value alone where there is one column."""
        made = {}
        for row in self.rows(f"FROM {relation} ORDER BY run_id", **filters):
            values = tuple(row[column] for column in columns)
            made[row["run_id"]] = values[0] if len(columns) == 1 else values
        return made
