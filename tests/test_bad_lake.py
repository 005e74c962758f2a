"""All bad input in one lake: read by one command, nothing lost, every report answers."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from collections import Counter

import pytest
from bad_files import RUN_IDS, RUNS
from bad_hosts import HOSTS
from bad_lake import BadLake
from conftest import ROOT

from analytics import open_lake

COMMAND = [sys.executable, "-m", "analytics"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("RUNLAKE_LAKE", "COLUMNS")}
ENVIRONMENT |= {"PYTHONPATH": str(ROOT)}


def runlake(lake, *arguments):
    """One command in a process of its own."""
    environment = ENVIRONMENT | {"RUNLAKE_LAKE": str(lake)}
    return subprocess.run([*COMMAND, *map(str, arguments)], env=environment, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The folder, its answers, the lake and what the ingest said."""
    folder = tmp_path_factory.mktemp("bad")
    made = BadLake(folder / "in")
    made.path = folder / "lake"
    made.done = runlake(made.path, "ingest", made.folder, "--format", "json", "--jobs", "1")
    assert made.done.returncode == 0, made.done.stderr.decode(errors="replace")[-3000:]
    (made.said,) = json.loads(made.done.stdout)
    return made


@pytest.fixture(scope="module")
def lake(bad):
    """The lake, opened once; tests only read it."""
    with open_lake(bad.path) as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(lake):
    """Every run: lines that are events, completeness."""
    found = lake.sql("SELECT run_id, event_lines, completeness FROM runs").fetchall()
    return {run: (lines, completeness) for run, lines, completeness in found}


def test_all_of_it_is_read_by_one_command_that_succeeds(bad):
    files = sum(path.is_file() for path in bad.folder.rglob("*"))
    read = bad.said["files_new"] + bad.said["files_refused"] + bad.said["files_skipped"] + bad.said["files_copied"]
    assert (read, files > 900) == (files, True)
    assert bad.said["files_refused"] == len(bad.refused)
    assert bad.said["files_copied"] == 1, "the same run in two files"


def test_the_refusals_are_those_of_the_table_and_no_other(bad, lake):
    found = Counter(dict(lake.sql("SELECT reason, count(*) FROM refusals GROUP BY reason").fetchall()))
    assert found == bad.reasons
    assert bad.said["refusals"] == bad.reasons.total()


def test_the_files_that_are_left_out_are_those_of_the_table(bad, lake):
    found = lake.sql("SELECT path, status_reason FROM sources WHERE status = 'skipped'").fetchall()
    assert dict(found) == bad.skipped
    refused = lake.sql("SELECT path FROM sources WHERE status = 'refused'").fetchall()
    assert {path for (path,) in refused} == bad.refused


def test_nothing_is_lost(bad):
    done = runlake(bad.path, "check", "--format", "json")
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert {row["result"] for row in json.loads(done.stdout)} == {"ok"}


@pytest.mark.parametrize("row", RUNS, ids=[row.name for row in RUNS])
def test_a_run_that_is_numbered_or_closed_in_an_odd_way(runs, row):
    ids = {run.split("#")[0] for run in row.runs}
    assert {run: said for run, said in runs.items() if run.split("#")[0] in ids} == row.runs


def test_every_run_id_is_one_run(bad, runs):
    for run, (lines, completeness) in bad.runs.items():
        assert run in runs, run[:100]
        assert runs[run][0] == lines, run[:100]
        assert completeness in (None, runs[run][1]), run[:100]


@pytest.mark.parametrize("run_id", RUN_IDS, ids=range(len(RUN_IDS)))
def test_a_run_of_an_odd_id_can_be_shown(lake, run_id):
    shown = lake.show(f"{run_id} metaharness").fetchall()
    assert len(shown) == len(HOSTS["metaharness"].good("r"))


def test_every_file_name_is_stored_as_text(bad, lake):
    found = lake.sql("SELECT path, runs[1].run_id FROM sources").fetchall()
    stored = {os.path.basename(path): run for path, run in found}
    for name, run in bad.paths.items():
        assert stored[name.decode("utf-8", "backslashreplace")] == run


def test_a_second_ingest_opens_nothing_new(bad):
    done = runlake(bad.path, "ingest", bad.folder, "--format", "json")
    (said,) = json.loads(done.stdout)
    assert (done.returncode, said["lines"], said["events"], said["refusals"]) == (0, 0, 0, 0)


def test_every_report_answers(lake):
    names = [report["report"] for report in lake.reports()]
    for name in names:
        lake.report(name).fetchall()
    assert len(names) > 25


@pytest.mark.long
def test_every_report_answers_however_it_is_grouped(lake):
    asked = [(report["report"], by) for report in lake.reports() for by in report["by"]]
    for name, by in asked:
        lake.report(name, by=by).fetchall()
    assert len(asked) > 10


@pytest.mark.parametrize(
    "command",
    [("runs", "--format", "csv"), ("refused", "--format", "csv"), ("show", "\x1b[31mred claude-code")],
    ids=" ".join,
)
def test_what_a_command_prints_of_it(bad, command):
    done = runlake(bad.path, *command)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode()
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("part", ["lines", "files"])
def test_strict_says_that_something_was_refused(bad, tmp_path, part):
    path = next((bad.folder / "lines").glob("*-metaharness.jsonl")) if part == "lines" else min(bad.refused)
    assert runlake(tmp_path / "lake", "ingest", path, "--strict").returncode == 1


# -- the line that does not fit into memory

MIB = 1 << 20
LIMIT = 32 * MIB
TEXT = b"water " * 10_922


def write_long_line(path, least):
    """A stream with one line of so many bytes and more between two good ones; returns the line's length and digest."""
    host = HOSTS["metaharness"]
    begin, middle, end = host.stream("long", host.line("long", text=b'"@"'), is_event=False)
    head, _, tail = middle.partition(b"@")
    digest, size = hashlib.sha256(head), len(head)
    with path.open("wb") as file:
        file.write(begin + head)
        while size < least:
            file.write(TEXT)
            digest.update(TEXT)
            size += len(TEXT)
        digest.update(tail.rstrip(b"\n"))
        file.write(tail + end)
    return size + len(tail) - 1, digest.hexdigest()


def peak_memory(arguments, lake):
    """Exit code, output, and the largest resident set in bytes of one command."""
    environment = ENVIRONMENT | {"RUNLAKE_LAKE": str(lake)}
    with subprocess.Popen([*COMMAND, *map(str, arguments)], env=environment, stdout=subprocess.PIPE) as child:
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert isinstance(usage, resource.struct_rusage)
    return child.returncode, json.loads(out)[0], usage.ru_maxrss * 1024


@pytest.fixture
def usual(tmp_path):
    """The largest resident set of an ingest that reads next to nothing."""
    path = tmp_path / "small.jsonl"
    path.write_bytes(b"".join(HOSTS["metaharness"].good("small")))
    return peak_memory(["ingest", path, "--format", "json"], tmp_path / "usual")[2]


@pytest.mark.slow
def test_a_line_of_200_mib_is_refused_by_name_in_bounded_memory(tmp_path, usual):
    path, lake = tmp_path / "long.jsonl", tmp_path / "lake"
    size, digest = write_long_line(path, 200 * MIB)
    code, said, peak = peak_memory(["ingest", path, "--format", "json"], lake)
    assert (code, said["refusals_by_reason"], said["lines"]) == (0, {"line_too_long": 1}, 3)
    with open_lake(lake) as opened:
        found = opened.sql("SELECT line, bytes, raw_sha256, octet_length(raw), detail FROM refusals").fetchall()
        assert {name for name, relation in opened.check().items() if relation.fetchall()} == set()
    ((line, octets, sha256, kept, detail),) = found
    assert (line, octets, sha256) == (2, size, digest)
    assert kept <= MIB
    assert detail == f"{size} bytes, the limit is {LIMIT}"
    # a line is read into a buffer of twice the limit before it is known to be longer, whatever its length
    assert peak - usual < 4 * LIMIT


@pytest.mark.slow
def test_a_raised_limit_reads_the_line(tmp_path, usual):
    path, lake = tmp_path / "long.jsonl", tmp_path / "lake"
    size, _ = write_long_line(path, LIMIT + MIB)
    ingest = ["ingest", path, "--format", "json"]
    assert peak_memory(ingest, lake)[1]["refusals_by_reason"] == {"line_too_long": 1}
    code, said, peak = peak_memory([*ingest, "--again", "--max-line-bytes", str(2 * LIMIT)], lake)
    assert (code, said["refusals_by_reason"], said["events"]) == (0, {}, 3)
    assert peak - usual < 12 * LIMIT
    with open_lake(lake) as opened:
        assert opened.sql("SELECT octet_length(encode(payload)) FROM events WHERE line = 2").fetchall() == [(size,)]
        assert opened.sql("SELECT count(*) FROM refusals").fetchall() == [(0,)]
