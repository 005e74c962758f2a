"""Spark as an engine, on `local-cluster[2,1,1024]`: equal rows for every view, and ingests whose processes are killed.

Needs Java 17 and pyspark; not in the default run: `pytest -m spark`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="pyspark is not installed (runlake[spark])")
# ruff: noqa: E402 (what follows needs it)
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

from analytics import open_lake
from analytics.compaction import LOOKED_UP
from analytics.engines.spark import register
from analytics.engines.spark.connecting import connect
from analytics.lake import Store
from analytics.relations import relations
from tests.conftest import CORPUS
from tests.helpers import CLAUDE, FIXTURES
from tests.sparkrows import rows_of

MASTER = "local-cluster[2,1,1024]"
FILES, TEXTS_A_FILE = 1_000, 400
SOURCES = [CORPUS, FIXTURES / "samples", FIXTURES / "cases", FIXTURES / "native"]


@pytest.fixture(scope="module")
def spark():
    session = connect(MASTER)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All fixture corpora in one lake: every wire, every trap."""
    lake = open_lake(tmp_path_factory.mktemp("all") / "lake", create=True)
    lake.ingest(*[path for path in SOURCES if path.exists()])
    return lake


def test_every_view_gives_the_same_rows_on_both_engines(spark, everything, capsys):
    names = register(spark, everything)
    assert sorted(names) == sorted(relations())
    compared, different = 0, []
    with ThreadPoolExecutor(3) as asking:  # the driver plans each for longer than it runs
        frames = asking.map(lambda name: spark.table(name).toArrow(), names)
        for name, frame in zip(names, frames, strict=True):
            wanted = everything.table(name)
            assert frame.column_names == wanted.columns, name
            got, rows = rows_of(frame), rows_of(wanted.to_arrow_table())
            compared += rows.total()
            if got != rows:
                different.append((name, list((rows - got).elements())[:1], list((got - rows).elements())[:1]))
    assert different == []
    with capsys.disabled():
        print(f"\n{len(names)} views, {compared:,} rows compared")  # noqa: T201
    assert compared > 10_000


def test_look_ups_in_compacted_files_find_what_is_there_and_nothing_else(spark, tmp_path, monkeypatch):
    """Spark reads the Bloom filters, too; each column has some in every file."""
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(CORPUS)
    monkeypatch.setattr("analytics.compaction.ROW_GROUP_ROWS", 200)
    store, _ = Store.open(Path(lake.path)).compact()
    lake = open_lake(lake.path)
    frame = spark.read.parquet(*store.files("event"))
    for column in LOOKED_UP:
        query = (
            f"SELECT {column}, count(*) AS n FROM stored_events WHERE {column} IS NOT NULL GROUP BY ALL ORDER BY ALL"
        )
        known = lake.sql(query).fetchall()[::40][:4]
        assert known
        for value, rows in [*known, ("not there", 0)]:
            assert frame.where(frame[column] == value).count() == rows


def test_reports_and_queries_answer_as_duckdb_does(spark, everything):
    asked = open_lake(everything.path, spark=spark, sandboxed=True)
    for filters in ({"wire": "metaharness", "since": "2026-01-01"}, {"run": "no such run"}):
        got = asked.report("denials", **filters).fetchall()
        assert got == everything.report("denials", **filters).fetchall()
    query = "SELECT wire, count(*) AS n FROM runs GROUP BY ALL ORDER BY n DESC, wire"
    assert asked.sql(query).fetchall() == everything.sql(query).fetchall()
    assert "Physical Plan" in asked.sql(f"EXPLAIN {query}").fetchall()[0][0]
    assert "Scan parquet" in asked.sql("EXPLAIN SELECT count(line) AS n FROM stored_events").fetchall()[0][0]
    asked.close()


# --- ingest -------------------------------------------------------------------------------------------------------


def corpus(folder: Path, files: int = FILES) -> Path:
    """So many runs of a Claude session, each with its own id and many texts; some 100 kB a file."""
    lines = [json.loads(line) for line in CLAUDE.read_text(encoding="utf-8").splitlines()]
    text = next(line for line in lines if line["event"] == "text")
    folder.mkdir()
    for number in range(files):
        run = [*lines[:-1], *[text] * TEXTS_A_FILE, lines[-1]]
        made = [json.dumps(line | {"run": f"spark/{number:04d}", "seq": seq}) for seq, line in enumerate(run, 1)]
        (folder / f"{number:04d}.jsonl").write_text("\n".join(made) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """A thousand files, and the lake that local processes make of them."""
    folder = tmp_path_factory.mktemp("thousand")
    streams = corpus(folder / "streams")
    local = open_lake(folder / "local", create=True)
    local.ingest(streams)
    return streams, local


def content(lake):
    """Every stored event, by what identifies it and its payload; no row twice."""
    rows = lake.sql("SELECT source_id, line, part, run_id, event, payload FROM stored_events").fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


def assert_same(lake, local):
    assert content(lake) == content(local)
    assert {name: rows.fetchall() for name, rows in lake.check().items() if rows.fetchall()} == {}
    kept = {file.relative for file in lake.store.all_files}
    assert {str(path.relative_to(lake.path)) for path in lake.path.glob("record=*/*/*.parquet")} >= kept


def begin(streams: Path, lake: Path) -> subprocess.Popen[bytes]:
    """An ingest on Spark in a process group of its own: the driver, and the JVM it starts."""
    command = [sys.executable, "-m", "analytics", "ingest", str(streams), "--lake", str(lake), "--engine", "spark"]
    said = lake.with_suffix(".said").open("wb")  # no pipe: what outlives the driver would hold it open
    return subprocess.Popen(
        [*command, "--master", MASTER, "--jobs", "8"], stdout=said, stderr=said, start_new_session=True
    )


def until_files_are_written(lake: Path, process: subprocess.Popen[bytes]) -> None:
    """Returns while executors are writing."""
    while not list(lake.glob("record=event/wire=metaharness/*.parquet")):
        assert process.poll() is None, lake.with_suffix(".said").read_text()
        time.sleep(0.05)


def executors(group: int) -> list[int]:
    """The executor processes below a driver's process group."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            said = (place / "cmdline").read_bytes()
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in said and int(fields[2]) == group and b"java" in said.split(b"\0")[0]:
            found.append(int(place.name))
    return found


def test_a_thousand_files_come_in_through_executors(spark, thousand, tmp_path):
    streams, local = thousand
    lake = open_lake(tmp_path / "lake", create=True)
    report = lake.ingest(streams, spark=spark)
    assert report.files_new == FILES
    assert lake.version == 1  # one commit
    assert_same(lake, local)
    again = lake.ingest(streams, spark=spark)
    assert (again.files_unchanged, lake.version) == (FILES, 1)


def test_a_killed_executor_changes_nothing(thousand, tmp_path):
    streams, local = thousand
    process = begin(streams, tmp_path / "lake")
    until_files_are_written(tmp_path / "lake", process)
    victims = executors(process.pid)
    assert victims
    os.kill(victims[0], signal.SIGKILL)
    assert process.wait(timeout=600) == 0, (tmp_path / "lake.said").read_text()
    assert_same(open_lake(tmp_path / "lake"), local)


def test_a_killed_driver_leaves_nothing_to_be_seen(spark, thousand, tmp_path):
    streams, local = thousand
    process = begin(streams, tmp_path / "lake")
    until_files_are_written(tmp_path / "lake", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    lake = open_lake(tmp_path / "lake")
    assert (lake.version, content(lake)) == (0, set())
    lake.ingest(streams, spark=spark)
    assert_same(lake, local)


def test_spark_that_cannot_be_reached_is_a_sentence(tmp_path):
    command = [sys.executable, "-m", "analytics", "report", "--engine", "spark", "--master", "nonsense[2]"]
    open_lake(tmp_path / "lake", create=True)
    ended = subprocess.run([*command, "--lake", str(tmp_path / "lake")], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Spark at nonsense[2] cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr
