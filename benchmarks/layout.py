"""What a lake's event files cost in other layouts: bytes, CPU to write, reports, look-ups, whole sources.

    python benchmarks/layout.py LAKE [--repeat 3] [--only WORD…]

LAKE is a lake after `runlake compact` (of a corpus of corpora.py, or your own). Its events are written anew in each
layout, into a temporary folder as large as LAKE, and asked the same questions there; the folder is then deleted.
Layouts take turns, --repeat times, so that a noisy machine harms all alike, and the least of each figure counts.
--only: the layouts that have one of these words in their name, beside the base.

The first row, the base, is the layout of `runlake compact` without its Bloom filters (row groups of 64 k, files of 256
MB, kind before source and line, zstd 3), in units; the other rows change one thing each and are ratios to it. Written:
CPU of sorting, encoding and compressing, reading aside. Asked: DuckDB on 2 threads, a new connection for each question,
warm page cache, kept facts aside. Reports: run_metrics, token_usage, unfinished and denials, one after the other. The
others are means over one look-up in every other wire. Steps: the texts of a run as `runlake show` asks for them; run,
call, request: all columns of the stored rows of a run_id, of a call_id, of a request_id or usage_key; source: its lines
as `runlake export --raw` reads them. MB: what DuckDB read. Wall seconds are told on stderr, turn by turn.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.compute as pc
from layouts import BASE, LAYOUTS, PLACE, Layout, write
from measuring import bytes_below

from analytics.catalog import built_in, select
from analytics.lake import Store
from analytics.relations import Relation, closure, composed, relations, words_of
from analytics.sqlfiles import quoted

THREADS = 2
IDS = ("call_id", "request_id", "usage_key")
REPORTS = ("token_usage", "unfinished", "denials")


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its DuckDB variables, and the columns of the table it counts to."""

    group: str
    sql: str
    variables: tuple[tuple[str, str], ...] = ()


def connect() -> duckdb.DuckDBPyConnection:
    """An engine as runlake uses it."""
    engine = duckdb.connect(config={"threads": THREADS})
    engine.execute("SET GLOBAL TimeZone = 'UTC'")
    engine.execute("SET GLOBAL parquet_metadata_cache = true")
    return engine


def listed(paths: Sequence[str | Path]) -> str:
    """A list of files as SQL."""
    return "[" + ", ".join(quoted(str(path)) for path in paths) + "]"


def questions(store: Store) -> list[Question]:
    """What is asked of each layout."""
    files = f"read_parquet({listed(store.files('event'))}, hive_partitioning = true)"
    asked = [Question("reports", "FROM run_metrics")]
    asked += [Question("reports", select(built_in()[name])) for name in REPORTS]
    engine = connect()

    def some(column: str) -> list[str]:
        query = f"SELECT arg_min({column}, hash({column})) FROM {files} WHERE {column} IS NOT NULL GROUP BY wire"
        return [value for (value,) in engine.execute(f"{query} ORDER BY wire").fetchall()][::2]

    for run in some("run_id"):
        sql = f"FROM transcript WHERE run_id = {quoted(run)} ORDER BY position"
        asked.append(Question("steps", sql, (("only_run", run),)))
    for column in ("run_id", *IDS):
        group = {"run_id": "run", "call_id": "call"}.get(column, "request")
        asked += [Question(group, f"FROM stored_events WHERE {column} = {quoted(value)}") for value in some(column)]
    for source in some("source_id"):
        lines = f"FROM stored_events WHERE source_id = {quoted(source)} AND (payload IS NOT NULL OR raw IS NOT NULL)"
        asked.append(Question("source", f"SELECT line, byte_offset, payload, raw {lines} ORDER BY line, byte_offset"))
    return asked


def text_of(question: Question, layout: Layout) -> str:
    """The query with all it builds on before it. Payloads that stand apart are joined for those who read them."""
    needed = closure(words_of(question.sql))
    if layout.is_apart:
        stored = relations()["stored_events"]
        query = str(stored.query).rstrip("; \n")
        if question.group == "reports":
            query = query.replace(" payload,", " NULL::VARCHAR AS payload,")
        else:
            query += f" AS e LEFT JOIN read_parquet(getvariable('payload_files')) AS p USING ({', '.join(PLACE)})"
        needed["stored_events"] = Relation(stored.text, query, stored.builds_on)
    text = composed(question.sql, needed)
    if text is None:
        raise SystemExit(f"{question.sql} cannot be asked.")
    return text


Cost = dict[tuple[str, str], float]  # (group, unit) → sum over its questions


def ask(asked: Sequence[Question], layout: Layout, folder: Path, store: Store) -> Cost:
    """What the questions cost in CPU seconds, wall seconds and MB read."""
    files = {
        "event_files": sorted(map(str, (folder / "events").rglob("*.parquet"))),
        "payload_files": sorted(map(str, (folder / "payloads").rglob("*.parquet"))),
        "refusal_files": store.files("refusal"), "source_files": store.files("source"),
    }  # fmt: skip
    cost: Cost = defaultdict(float)
    for question in asked:
        engine = connect()
        for name, paths in files.items():
            engine.execute(f"SET VARIABLE {name} = {listed(paths)}")
        for name, value in question.variables:
            engine.execute(f"SET VARIABLE {name} = {quoted(value)}")
        engine.execute("PRAGMA enable_profiling = 'no_output'")
        text = text_of(question, layout)
        wall, cpu = time.perf_counter(), time.process_time()
        answer = engine.sql(text).to_arrow_table()
        cost[question.group, "CPU"] += time.process_time() - cpu
        cost[question.group, "wall"] += time.perf_counter() - wall
        told = json.loads(engine.get_profiling_information("json"))
        cost[question.group, "MB"] += told["io"]["total_bytes_read"] / 1e6
        cost[question.group, "rows"] += answer.num_rows
        if "payload" in answer.column_names:
            cost[question.group, "octets"] += pc.sum(pc.binary_length(answer["payload"])).as_py() or 0
        engine.close()
    return cost


LOOK_UPS = ("steps", "run", "call", "request", "source")
COLUMNS = (
    ("", "MB"), ("written", "CPU"), ("reports", "CPU"),
    *((group, unit) for group in LOOK_UPS for unit in ("CPU", "MB")),
)  # fmt: skip


def table(best: dict[str, Cost], asked: Sequence[Question]) -> Iterator[str]:
    """The Markdown table: the base in its units, the others as ratios to it."""
    base = best[BASE]
    columns = [key for key in COLUMNS if base.get(key)]  # a lake may have no calls
    yield f"| layout | {' | '.join(' '.join(key).strip() for key in columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    cells = []
    for group, unit in columns:
        many = sum(question.group == group for question in asked) if group in LOOK_UPS else 1
        cells.append(f"{base[group, unit] / many:.{2 if unit == 'MB' else 3}f}{' s' if unit == 'CPU' else ''}")
    yield f"| {BASE} | {' | '.join(cells)} |"
    for name, cost in best.items():
        if name != BASE:
            size, *ratios = [cost[key] / base[key] for key in columns]
            yield f"| {name} | {' | '.join([f'{size:.3f}', *(f'{ratio:.2f}' for ratio in ratios)])} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""])
    args = parser.parse_args()
    store = Store.open(args.lake)
    wires: dict[str, list[Path]] = defaultdict(list)
    for file in store.all_files:
        if file.record == "event" and file.rows:
            wires[file.wire].append(store.root / file.relative)
    if not wires:
        parser.error(f"{args.lake} holds no events")
    asked = questions(store)
    best: dict[str, Cost] = {}
    for turn in range(args.repeat):
        for layout in LAYOUTS:
            if layout.name != BASE and not any(word in layout.name for word in args.only):
                continue
            with tempfile.TemporaryDirectory(prefix="runlake-layout-") as temporary:
                folder = Path(temporary)
                written = write(layout, wires, folder)
                cost = ask(asked, layout, folder, store)
                cost |= {("", "MB"): bytes_below(folder) / 1e6, ("written", "CPU"): written}
            known = best.get(layout.name, cost)
            best[layout.name] = {key: min(value, known[key]) for key, value in cost.items()}
            figures = {" ".join(key).strip(): round(value, 3) for key, value in cost.items()}
            print(f"turn {turn + 1}, {layout.name}: {json.dumps(figures)}", file=sys.stderr, flush=True)
    answers = {tuple(cost[key] for key in cost if key[1] in ("rows", "octets")) for cost in best.values()}
    if len(answers) > 1:
        raise SystemExit(f"The layouts do not give the same answers: {answers}")
    print(*table(best, asked), sep="\n")


if __name__ == "__main__":
    main()
