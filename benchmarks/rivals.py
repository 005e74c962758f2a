"""The other ways to get the same files into Parquet, each a program: what runlake's cost is held against.

    python benchmarks/rivals.py duckdb|polars|polars-inferring|floor FOLDER OUT.parquet [--wire NAME] [--threads 1]
    python benchmarks/rivals.py zstd FOLDER OUT

duckdb            one line of SQL: COPY (SELECT * FROM read_json(…)) TO …; keeps no refusals and dies on a bad line
polars            scan_ndjson(…, schema=…).sink_parquet(…) with the fields of the wire that become columns of `events`;
                  keeps no payload, and dies on a bad line
polars-inferring  the same without a schema, for what becomes of it: it tells how much of the first file's fields is in
                  the answer
floor             the least that the job can cost: the lines alone as one string column to Parquet at zstd-1, and one
                  decode of each line into its wire's envelope, the same fields as for polars; nothing is made of it
zstd              each file by itself at zstd level 3; writes nothing but how many bytes that makes

FOLDER is read with all `.jsonl` below it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

BLOCK_BYTES = 64 << 20
ONE_LINER = (
    "COPY (SELECT * FROM read_json('{files}', format = 'newline_delimited', union_by_name = true, "
    "ignore_errors = false)) TO '{out}' (FORMAT parquet, COMPRESSION zstd)"
)
# name: type. s(tring), i(nteger), b(oolean), f(loat), a dict for a record, [one] for a list of records
Fields = dict[str, Any]
CODEX_FIGURES: Fields = dict.fromkeys(
    ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), "i"
)
CLAUDE_FIGURES: Fields = dict.fromkeys(
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"), "i"
)
ENVELOPES: dict[str, Fields] = {
    "metaharness": {
        "format": "s", "seq": "i", "run": "s", "at": "s", "event": "s", "request_id": "s", "model": "s", "call_id": "s",
        "name": "s", "decision": {"decision": "s", "reason": "s"}, "decided_by": "s", "is_error": "b", "exit_code": "i",
        "usage": CLAUDE_FIGURES | {"thinking_tokens": "i", "cost_usd": "f"}, "turn": "i", "adapter": "s", "cwd": "s",
        "info": {"status": "s", "window": "s", "resets_at": "i", "utilization": "f"}, "events": "i", "reason": "s",
    },
    "harness-lab": {
        "event_id": "s", "run_id": "s", "sequence": "i", "timestamp": "s", "kind": "s", "source": "s", "name": "s",
        "duration_ms": "i", "call_id": "s", "parent_call_id": "s",
        "payload": CODEX_FIGURES | {
            "cache_write_tokens": "i", "model": "s", "message_id": "s", "tool": "s", "status": "s", "exit_code": "i",
            "total_cost_usd": "f", "task": "s", "variant": "s", "outcome": "s",
        },
    },
    "platonic-core": {
        "v": "i",
        "record": {
            "seq": "i", "occurred_at_ms": "i",
            "event": {
                "event": "s", "run_id": "s", "turn_id": "s", "step": "i", "call_id": "s", "model": "s",
                "served_model": "s", "reason": "s", "usage": {"input_tokens": "i", "output_tokens": "i"},
                "decision": {"decision": "s", "reason": "s"}, "call": {"id": "s", "tool": "s", "effect": "s"},
                "result": {"call_id": "s"},
            },
        },
    },
    "claude-code": {
        "parentUuid": "s", "isSidechain": "b", "cwd": "s", "sessionId": "s", "version": "s", "gitBranch": "s",
        "type": "s", "requestId": "s", "uuid": "s", "timestamp": "s",
        "message": {"id": "s", "model": "s", "role": "s", "stop_reason": "s", "usage": CLAUDE_FIGURES},
    },
    "claude-stream": {
        "type": "s", "subtype": "s", "session_id": "s", "uuid": "s", "parent_tool_use_id": "s", "total_cost_usd": "f",
        "message": {"id": "s", "model": "s", "role": "s", "stop_reason": "s", "usage": CLAUDE_FIGURES},
        "rate_limit_info": {"status": "s", "resetsAt": "i", "rateLimitType": "s", "utilization": "f"},
    },
    "codex-rollout": {
        "timestamp": "s", "type": "s",
        "payload": {
            "type": "s", "id": "s", "call_id": "s", "name": "s", "role": "s", "turn_id": "s", "model": "s",
            "info": {"total_token_usage": CODEX_FIGURES, "last_token_usage": CODEX_FIGURES},
            "rate_limits": {"primary": {"used_percent": "f", "window_minutes": "i", "resets_at": "i"}},
        },
    },
    "codex-exec": {
        "type": "s", "thread_id": "s", "usage": CODEX_FIGURES,
        "item": {"id": "s", "type": "s", "status": "s", "exit_code": "i", "tool": "s", "server": "s"},
    },
}  # fmt: skip


def duckdb(folder: Path, out: Path, threads: int) -> None:
    """One line of SQL."""
    import duckdb as engine

    sql = ONE_LINER.format(files=folder / "**" / "*.jsonl", out=out)
    engine.sql(f"SET threads = {threads}; SET enable_progress_bar = false; {sql}")


def polars(folder: Path, out: Path, wire: str) -> None:
    """The wire's envelope, declared."""
    import polars as pl

    leaves = {"s": pl.String, "i": pl.Int64, "b": pl.Boolean, "f": pl.Float64}

    def types(fields: Fields) -> dict[str, Any]:
        return {
            name: pl.Struct(types(kind)) if isinstance(kind, dict) else leaves[kind] for name, kind in fields.items()
        }

    pl.scan_ndjson(folder / "**" / "*.jsonl", schema=types(ENVELOPES[wire])).sink_parquet(out)


def polars_inferring(folder: Path, out: Path) -> None:
    """Without a schema; prints how many of the fields of the first file's lines it kept."""
    import msgspec
    import polars as pl

    pl.scan_ndjson(folder / "**" / "*.jsonl").sink_parquet(out)
    lines = min(folder.rglob("*.jsonl")).read_bytes()
    there = {path for line in msgspec.json.Decoder().decode_lines(lines) for path in _paths(line)}
    kept = set(_paths_of(pl.scan_parquet(out).collect_schema()))
    print(f"{len(there & kept)} of {len(there)} fields")


def _paths(value: Any, above: str = "") -> Iterator[str]:
    """The dotted names of a record's fields, as deep as records go."""
    for name, one in value.items():
        yield above + name
        if isinstance(one, dict):
            yield from _paths(one, f"{above}{name}.")


def _paths_of(types: Any, above: str = "") -> Iterator[str]:
    """The same of a frame's schema."""
    import polars as pl

    for name, one in types.items():
        yield above + name
        if isinstance(one, pl.Struct):
            yield from _paths_of(one.to_schema(), f"{above}{name}.")


def floor(files: list[Path], out: Path, wire_of: Callable[[Path], str]) -> None:
    """Payload written, the envelope decoded."""
    import msgspec
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    leaves = {"s": str, "i": int, "b": bool, "f": float}

    def record(fields: Fields) -> Any:
        types = {name: record(kind) if isinstance(kind, dict) else leaves[kind] for name, kind in fields.items()}
        return msgspec.defstruct("Envelope", [(name, kind | None, None) for name, kind in types.items()], gc=False)

    decoders = {wire: msgspec.json.Decoder(record(fields)) for wire, fields in ENVELOPES.items()}
    schema = pa.schema([("payload", pa.string())])
    with pq.ParquetWriter(out, schema, compression="zstd", compression_level=1,
                          use_dictionary=False, write_statistics=False) as writer:  # fmt: skip
        for wire, block in _blocks(files, wire_of):
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
            offsets = np.zeros(len(ends) + 1, np.int32)
            offsets[1:] = ends - np.arange(len(ends))
            text = pa.StringArray.from_buffers(
                len(ends), pa.py_buffer(offsets), pa.py_buffer(block.replace(b"\n", b""))
            )
            writer.write_table(pa.table([text], schema=schema))
            decoders[wire].decode_lines(block)


def _blocks(files: list[Path], wire_of: Callable[[Path], str]) -> Iterator[tuple[str, bytes]]:
    """The whole lines of neighbouring files of one wire, in blocks."""
    for wire, group in groupby(files, wire_of):
        held: list[bytes] = []
        for path in group:
            data = path.read_bytes()
            held.append(data[: data.rfind(b"\n") + 1])
            if sum(map(len, held)) >= BLOCK_BYTES:
                yield wire, b"".join(held)
                held = []
        if held:
            yield wire, b"".join(held)


def _by_folder(path: Path) -> str:
    """The wire of a file of `corpora.py`."""
    return next(part for part in reversed(path.parts) if part in ENVELOPES)


def zstd(files: list[Path], out: Path) -> None:
    """Bytes of the files, each compressed by itself at level 3."""
    import pyarrow as pa

    codec = pa.Codec("zstd", compression_level=3)
    out.write_text(f"{sum(len(codec.compress(path.read_bytes())) for path in files)}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("duckdb", "polars", "polars-inferring", "floor", "zstd"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wire", choices=list(ENVELOPES))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(given.threads)
    if given.program == "duckdb":
        duckdb(given.folder, given.out, given.threads)
    elif given.program == "polars":
        polars(given.folder, given.out, given.wire)
    elif given.program == "polars-inferring":
        polars_inferring(given.folder, given.out)
    elif given.program == "zstd":
        zstd(sorted(given.folder.rglob("*.jsonl")), given.out)
    else:
        floor(sorted(given.folder.rglob("*.jsonl")), given.out, _by_folder)


if __name__ == "__main__":
    main()
