"""The lake's files written anew without the rows of some sources: what a file that was rewritten leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics import lakefiles
from analytics.compaction import batch_rows
from analytics.lakefiles import EMPTY_WIRE, ROW_GROUP_ROWS, WrittenFile
from analytics.places import parquet_file
from analytics.schema import Record, arrow_schema

if TYPE_CHECKING:
    from analytics.lake import Store

CHUNK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Replacement:
    """Files for one commit that take a source's rows out of the lake."""

    added: list[WrittenFile]
    removed: list[str]
    rows: int


def without_sources(store: Store, source_ids: frozenset[str], ingest_id: str, first_number: int) -> Replacement:
    """Copies of the event and refusal files that hold rows of these sources, without those rows."""
    wanted = pa.array(sorted(source_ids), pa.string())
    done = Replacement([], [], 0)
    rows = 0
    for file in store.all_files if source_ids else ():
        if file.record == "source" or file.wire == EMPTY_WIRE:
            continue
        with parquet_file(store.root / file.relative) as reader:
            hits = sum(_count(reader, group, wanted) for group in range(reader.num_row_groups))
            if not hits:
                continue
            rows += hits
            done.removed.append(file.relative)
            if hits < file.rows:
                number = first_number + len(done.added)
                path = lakefiles.data_path(file.record, file.wire, ingest_id, number, in_place_of=file.order_key)
                _copy_without(reader, store.root / path, file.record, wanted)
                done.added.append(lakefiles.describe(store.root, path))
    return Replacement(done.added, done.removed, rows)


def _count(reader: pq.ParquetFile, group: int, wanted: pa.Array) -> int:
    """Rows of these sources in a row group. Its bounds are asked first: a large source fills whole row groups."""
    metadata = reader.metadata.row_group(group)
    at = next(i for i in range(metadata.num_columns) if metadata.column(i).path_in_schema == "source_id")
    stats = metadata.column(at).statistics
    if stats is not None and stats.has_min_max:
        near = pc.and_(pc.greater_equal(wanted, stats.min), pc.less_equal(wanted, stats.max))
        if not pc.any(near).as_py():
            return 0
    ids = reader.read_row_group(group, columns=["source_id"])["source_id"]
    hits: int | None = pc.sum(pc.is_in(ids, value_set=wanted)).as_py()
    return hits or 0


def _copy_without(reader: pq.ParquetFile, path: Path, record: Record, unwanted: pa.Array) -> None:
    held: list[pa.RecordBatch] = []
    schema = arrow_schema(record)
    with lakefiles.parquet_writer(path, record) as writer:
        for group in range(reader.num_row_groups):
            for batch in reader.iter_batches(batch_rows(reader, group), row_groups=[group]):
                held.append(batch.filter(pc.invert(pc.is_in(batch["source_id"], value_set=unwanted))))
                if sum(b.num_rows for b in held) >= ROW_GROUP_ROWS or sum(b.nbytes for b in held) >= CHUNK_BYTES:
                    writer.write_table(pa.Table.from_batches(held, schema), row_group_size=ROW_GROUP_ROWS)
                    held = []
        if held:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=ROW_GROUP_ROWS)
