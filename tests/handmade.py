"""Small lakes written by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id, parquet_writer
from analytics.schema import Record, arrow_schema


def make_lake(root: Path, wire: str = "metaharness", **rows: Sequence[Mapping[str, Any]]) -> Store:
    """A lake with the given `event`, `refusal` and `source` rows of one wire, in one commit."""
    store = Store.open(root, create=True)
    ingest_id = new_ingest_id()
    written = []
    for number, (record, some) in enumerate(rows.items()):
        written.append(_write(store.root, record, wire, ingest_id, number, some))
    return store.commit(written, [], ingest_id=ingest_id, note="made by hand")


def _write(root: Path, record: Record, wire: str, ingest_id: str, number: int, rows: Sequence[Mapping[str, Any]]):
    relative = data_path(record, wire, ingest_id, number)
    schema = arrow_schema(record)
    with parquet_writer(root / relative, record) as writer:
        writer.write_table(pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in rows], schema))
    return describe(root, relative)


def events(run_id: str, *kinds: Mapping[str, Any], source_id: str = "s1") -> list[dict[str, Any]]:
    """Event rows of one run, one line each."""
    return [
        {"source_id": source_id, "line": n, "part": 0, "run_id": run_id, "seq": n - 1, "redactions": 0, **kind}
        for n, kind in enumerate(kinds, 1)
    ]


def source(*runs: Mapping[str, Any], source_id: str = "s1", **more: Any) -> dict[str, Any]:
    """A ledger row that says which runs stand in it."""
    return {
        "source_id": source_id,
        "revision": 1,
        "path": f"/streams/{source_id}.jsonl",
        "status": "read",
        "runs": list(runs),
    } | more
