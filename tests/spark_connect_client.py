"""What a user does over Spark Connect, in a process of its own: one process holds one kind of Spark session.

    python spark_connect_client.py sc://HOST:PORT FOLDER SOURCE…

Ingests the sources twice, by executors and by local processes, asks both engines, and prints how many rows were equal.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from analytics import open_lake
from analytics.engines.spark import register
from analytics.engines.spark.connecting import connect
from tests.sparkrows import rows_of

RELATIONS = ("runs", "usage", "tool_calls", "decisions", "refusals", "sources", "run_metrics")
EVENTS = "SELECT source_id, line, part, run_id, event, kind, payload FROM stored_events"


def main(url: str, folder: str, *sources: str) -> None:
    """Fails with the name of the first relation that differs."""
    spark = connect(url)
    made = open_lake(Path(folder) / "spark", create=True)
    seen: list[int] = []
    made.ingest(*sources, spark=spark, progress=lambda **told: seen.append(told["bytes_done"]))
    local = open_lake(Path(folder) / "local", create=True)
    local.ingest(*sources)
    assert rows_of(made.sql(EVENTS).to_arrow_table()) == rows_of(local.sql(EVENTS).to_arrow_table())
    register(spark, made, *RELATIONS)
    rows = {}
    for name in RELATIONS:
        got, wanted = rows_of(spark.table(name).toArrow()), rows_of(made.table(name).to_arrow_table())
        assert got == wanted, name
        rows[name] = got.total()
    spark.stop()
    print(json.dumps({"rows": rows, "version": made.version, "bytes_done": seen[-1]}))  # noqa: T201 (what the test reads)


main(*sys.argv[1:])
