"""An ingest that is killed at any moment, and begun again, leaves the lake that an unkilled one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from helpers import BLOCKED, CANCELED, CLAUDE, CODEX, EXPORTED, GENERIC, LEDGER, RECORDED, TWO_RUNS, Lab

from analytics.lake import Store

pytestmark = pytest.mark.kill

# Runs an ingest in several batches, and kills itself after so many steps of writing (0: only counts them). A step is
# the begin or the end of whatever leaves something on disk.
SCRIPT = """
import os, signal, sys
import deltalake, pyarrow.parquet as pq
from analytics import batching, compaction, durable, ingest, lake, lakefiles

batching.BATCH_FILES, batching.TASK_FILES = 2, 1

def kill_after(wanted):
    steps = 0
    def step():
        nonlocal steps
        steps += 1
        if steps == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
    def watched(owner, name):
        real = getattr(owner, name)
        def call(*arguments, **options):
            step()
            try:
                return real(*arguments, **options)
            finally:
                step()
        setattr(owner, name, call)
    watched(pq.ParquetWriter, "write_table")
    watched(pq.ParquetWriter, "close")
    watched(deltalake.DeltaTable, "create_write_transaction")
    watched(durable, "make_durable")
    watched(lake, "write_text")
    return lambda: steps

folder, lakes = sys.argv[1], sys.argv[2:]
for one in lakes:  # each in a child of a process that has imported everything and started nothing
    path, wanted = one.rsplit(":", 1)
    child = os.fork()
    if child == 0:
        steps = kill_after(int(wanted))
        ingest.ingest(path, [folder])
        if wanted == "0":
            print(steps(), flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        print("killed", flush=True)
    elif status:
        sys.exit(f"{one}: {status}")
"""


def run(lab, *lakes):
    """Ingest the sources into lakes, each killed after as many steps as stand behind its name."""
    arguments = [f"{path}:{steps}" for path, steps in lakes]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(lab.sources), *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def lab(tmp_path):
    """A lake, and sources that changed since in each way: new, grown, rewritten, copied, moved, gone."""
    made = Lab(tmp_path)
    claude = CLAUDE.read_bytes()
    grows = made.write("grows.jsonl", claude[:5000])
    rewritten = made.write("h-rewritten.jsonl", CODEX.read_bytes())
    made.write("i-copy-of-it.jsonl", CODEX.read_bytes())
    gone = made.write("gone.jsonl", RECORDED.read_bytes())
    moves = made.write("z-moves.jsonl", BLOCKED.read_bytes()[:6000])
    made.ingest()
    grows.write_bytes(claude)
    rewritten.write_bytes(TWO_RUNS.read_bytes())
    gone.unlink()
    moves = moves.rename(made.sources / "b-moved.jsonl")
    with moves.open("ab") as file:
        file.write(BLOCKED.read_bytes()[6000:])
    for stream in (LEDGER, CANCELED, GENERIC, EXPORTED):
        made.write(stream.name, stream.read_bytes())
    return made


def at(lab, path):
    """The lab with another lake."""
    other = Lab(lab.folder)
    other.path = path
    return other


def test_killed_at_ten_moments_and_begun_again(lab):
    lakes = [lab.folder / f"lake-{n}" for n in range(11)]
    for path in lakes:
        shutil.copytree(lab.path, path)
    (steps,) = map(int, run(lab, (lakes[0], 0)))
    unkilled = at(lab, lakes[0]).content()
    moments = [1 + (steps - 1) * n // 9 for n in range(10)]
    assert len(set(moments)) == 10
    said = run(lab, *zip(lakes[1:], moments, strict=True))
    assert said == ["killed"] * 10
    half_way = [at(lab, path).sql("SELECT count(*) FROM stored_events")[0][0] for path in lakes[1:]]
    assert len(set(half_way)) > 2, "kills fell before, between and after commits"
    run(lab, *((path, 0) for path in lakes[1:]))
    for path, moment in zip(lakes[1:], moments, strict=True):
        assert at(lab, path).content() == unkilled, f"killed at step {moment} of {steps}"
        assert Store.open(path).vacuum_orphans() == [], "the next writer clears away what the killed one left"
    assert at(lab, lakes[5]).failed_checks() == at(lab, lakes[0]).failed_checks()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2])
def test_the_command_killed_from_outside(lab, tmp_path, seconds):
    """The program as a user runs it, killed so long after it took the lake's lock."""
    expected = tmp_path / "expected"
    shutil.copytree(lab.path, expected)
    at(lab, expected).ingest()
    command = [sys.executable, "-m", "analytics", "ingest", str(lab.sources), "--lake", str(lab.path)]
    lock = lab.path / ".lock"
    lock.unlink(missing_ok=True)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not lock.exists() and process.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lab.ingest()
    assert lab.content() == at(lab, expected).content()
    assert Store.open(lab.path).vacuum_orphans() == []


def test_two_ingests_at_once_bring_each_line_once(tmp_path):
    one, alone = Lab(tmp_path), Lab(tmp_path, "alone")
    for n in range(6):
        one.write(f"{n}.jsonl", CLAUDE.read_bytes().replace(b"night-0412/claude-a", b"run-%d" % n))
    command = [sys.executable, "-m", "analytics", "ingest", str(one.sources), "--lake", str(one.path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
    for process in both:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    alone.ingest()
    assert one.content() == alone.content()
    assert one.sql("SELECT count(*), count(DISTINCT source_id) FROM stored_events") == [(6 * 42, 6)]
    assert one.sql("SELECT max(revision) FROM sources") == [(1,)]
    assert os.listdir(one.path)
