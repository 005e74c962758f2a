"""Parquet files of one worker: one open event file per wire, one refusal file per wire."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.columns import PAYLOAD_AT, Batch
from analytics.lakefiles import ROW_GROUP_ROWS, WrittenFile, abandon, data_path, describe, parquet_writer
from analytics.places import Place
from analytics.schema import Record, arrow_schema

ROW_GROUP_BYTES = 48 << 20
WAITING_BYTES = 64 << 20  # of all wires together: where they alternate, none may get to a row group of its own
LEVEL = 1
SCHEMA = arrow_schema("event").set(PAYLOAD_AT, pa.field("payload", pa.string_view()))


class Writers:
    """The open files of one worker, all of one number; nothing reads them before they are committed."""

    _free: ClassVar[list[bytearray]] = []  # of the process: new memory costs more than memory that was used before

    def __init__(self, lake: Place, ingest_id: str, number: int, attempt: str = "") -> None:
        self._lake, self._ingest_id, self._number, self._attempt = lake, ingest_id, number, attempt
        self._open: dict[str, tuple[pq.ParquetWriter, str]] = {}
        self._waiting: dict[str, list[Batch]] = {}
        self._refused: dict[str, list[dict[str, Any]]] = {}

    def buffer(self, size: int) -> bytearray:
        """A buffer of that size: one that a written batch gave back, or a new one."""
        if self._free and len(self._free[-1]) != size:
            Writers._free.clear()
        return self._free.pop() if self._free else bytearray(size)

    def events(self, wire: str, batch: Batch) -> None:
        """Queue event rows; a row group is written when there is enough for one."""
        waiting = self._waiting.setdefault(wire, [])
        waiting.append(batch)
        if sum(b.rows.num_rows for b in waiting) >= ROW_GROUP_ROWS or self._size(wire) >= ROW_GROUP_BYTES:
            self._write(wire)
        elif sum(map(self._size, self._waiting)) >= WAITING_BYTES:
            self._write(max(self._waiting, key=self._size))

    def _size(self, wire: str) -> int:
        return sum(batch.payload_bytes for batch in self._waiting[wire])

    def refusals(self, wire: str, rows: list[dict[str, Any]]) -> None:
        """Keep refusal rows of one source for the wire's refusal file."""
        if rows:
            self._refused.setdefault(wire, []).extend(rows)

    def close(self) -> list[WrittenFile]:
        """Finish all files; returns what was written."""
        for wire in list(self._waiting):
            self._write(wire)
        done: list[WrittenFile] = []
        for writer, relative in self._open.values():
            writer.close()
            done.append(describe(self._lake, relative))
        for wire, rows in self._refused.items():
            relative = self._relative("refusal", wire)
            with parquet_writer(self._lake / relative, "refusal", level=LEVEL) as writer:
                writer.write_table(pa.Table.from_pylist(rows, schema=arrow_schema("refusal")))
            done.append(describe(self._lake, relative))
        return done

    def abandon(self) -> None:
        """After a failure: do not try to finish files (pyarrow would, when they are collected)."""
        for writer, _ in self._open.values():
            abandon(writer)

    def _write(self, wire: str) -> None:
        waiting = self._waiting.pop(wire, [])
        if not waiting:
            return
        table = pa.Table.from_batches([batch.rows for batch in waiting])
        if table.num_rows:
            payload = pa.chunked_array([batch.payload for batch in waiting], pa.string_view())
            self._writer(wire).write_table(table.add_column(PAYLOAD_AT, "payload", payload), row_group_size=1 << 30)
        Writers._free += [batch.buffer for batch in waiting if batch.buffer is not None]

    def _writer(self, wire: str) -> pq.ParquetWriter:
        """The open event file of a wire."""
        if wire not in self._open:
            relative = self._relative("event", wire)
            self._open[wire] = (parquet_writer(self._lake / relative, "event", level=LEVEL, schema=SCHEMA), relative)
        return self._open[wire][0]

    def _relative(self, record: Record, wire: str) -> str:
        return data_path(record, wire, self._ingest_id, self._number, attempt=self._attempt)
