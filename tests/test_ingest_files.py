"""Files as they live: they grow, shrink, move, vanish and come back, are copied, compressed, cut and corrupted."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from helpers import (
    BLOCKED,
    CANCELED,
    CLAUDE,
    CODEX,
    EXPORTED,
    GENERIC,
    LEDGER,
    RECORDED,
    SAMPLES,
    TWO_RUNS,
    Lab,
    Reader,
    check_conservation,
    rebuild,
)

from analytics import batching, contents, feeding, reading
from analytics.errors import RunlakeError

SANITIZED = SAMPLES / "harness-lab/agent-stream-claude.sanitized.jsonl"
STREAMS = [CLAUDE, CODEX, TWO_RUNS, RECORDED, LEDGER, CANCELED, GENERIC, BLOCKED, EXPORTED]


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def count_opens(monkeypatch) -> list[str]:
    """Every path whose content is looked at from now on."""
    opened: list[str] = []
    real = reading.open_source

    def spy(path, **options):
        opened.append(path)
        return real(path, **options)

    monkeypatch.setattr(reading, "open_source", spy)
    monkeypatch.setattr(contents, "open_source", spy)
    return opened


# -- again, in another order, by other names


def test_the_second_time_no_file_is_opened_and_no_version_made(lab, monkeypatch):
    for stream in STREAMS:
        lab.write(stream.name, stream.read_bytes())
    first = lab.ingest()
    before = lab.content()
    opened = count_opens(monkeypatch)
    second = lab.ingest()
    assert opened == []
    assert (second.version, second.files_unchanged) == (first.version, len(STREAMS))
    assert (second.lines, second.events, second.bytes_in, second.bytes_out) == (0, 0, 0, 0)
    assert lab.content() == before


def test_the_order_in_which_files_come_changes_nothing(tmp_path):
    together, apart = Lab(tmp_path), Lab(tmp_path, "other")
    paths = [together.write(stream.name, stream.read_bytes()) for stream in STREAMS]
    together.ingest()
    random.Random(5).shuffle(paths)
    for path in paths:
        apart.ingest(path)
    assert apart.content() == together.content()
    assert apart.metrics() == together.metrics()


def test_a_source_that_ends_in_a_refused_line_alone_shifts_no_column_of_its_neighbours(tmp_path):
    """Of the cut line there is no row, but it is decoded by itself; what follows stands in the same block."""
    together, apart = Lab(tmp_path), Lab(tmp_path, "apart")
    paths = [
        together.write("a.jsonl.gz", gzip.compress(CODEX.read_bytes()[:5000], mtime=0)),
        together.write("b.jsonl", TWO_RUNS.read_bytes()),
        together.write("c.jsonl", CLAUDE.read_bytes()),
    ]
    together.ingest()
    for path in paths:
        apart.ingest(path)
    assert together.content() == apart.content()
    assert together.sql("SELECT count(*) FROM events WHERE ts IS NOT NULL AND ts_origin IS NULL") == [(0,)]


def test_two_jobs_give_what_one_gives(tmp_path, monkeypatch):
    monkeypatch.setattr(batching, "SMALL_BYTES", 0)
    one, two = Lab(tmp_path), Lab(tmp_path, "two")
    for stream in STREAMS:
        one.write(stream.name, stream.read_bytes())
    monkeypatch.setattr(batching, "TASK_FILES", 2)
    first, second = one.ingest(jobs=1), two.ingest(jobs=2)
    assert two.content() == one.content()
    assert (first.events, first.refusals_by_reason) == (second.events, second.refusals_by_reason)


@pytest.mark.parametrize(
    ("sizes_mib", "jobs", "processes"),
    [
        ([20, 20], 2, 1),  # below what a pool pays for
        ([60], 2, 1),  # one file is read by one process
        ([30, 30], 64, 2),
        ([4] * 16, 64, 8),  # of 64 MiB each of eight gets 8
        ([4] * 16, 1, 1),
        ([50] * 40, 3, 3),
    ],
)
def test_no_more_processes_than_get_something(sizes_mib, jobs, processes):
    found = [SimpleNamespace(kind="file", size=mib << 20) for mib in sizes_mib]
    assert batching.jobs_for(found, jobs) == processes


def test_many_batches_give_what_one_gives(tmp_path, monkeypatch):
    one, many = Lab(tmp_path), Lab(tmp_path, "many")
    for stream in STREAMS:
        one.write(stream.name, stream.read_bytes())
    one.write("copy.jsonl", CLAUDE.read_bytes())
    one.ingest()
    monkeypatch.setattr(batching, "BATCH_FILES", 1)
    many.ingest()
    assert many.content() == one.content()


def test_a_renamed_file_keeps_its_run_once(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    before = lab.metrics()
    path.rename(path.with_name("b.jsonl"))
    report = lab.ingest()
    assert (report.events, report.files_copied, report.files_gone) == (0, 1, 1)
    assert lab.metrics() == before


def test_a_copy_is_read_once_and_both_paths_are_known(lab):
    lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("deep/b.jsonl", CLAUDE.read_bytes())
    report = lab.ingest()
    assert (report.files_new, report.files_copied, report.lines) == (1, 1, 37)
    assert lab.sql("SELECT status, count(*) FROM sources GROUP BY status ORDER BY status") == [("copy", 1), ("read", 1)]
    assert [row["events"] for row in lab.metrics()] == [37]


def test_a_copy_that_came_earlier_holds_what_a_rewrite_takes(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    path.write_bytes(CODEX.read_bytes())
    lab.ingest()
    assert {row["run_id"]: row["events"] for row in lab.metrics()} == {"cx-7731": 26, "night-0412/claude-a": 37}
    assert lab.failed_checks() == {}


@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_a_compressed_copy_shows_no_run_twice(lab, kind):
    """The bytes differ, the content does not: naively a second run, every token counted twice."""
    lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl.gz", gzip.compress(CLAUDE.read_bytes()))
    if kind == "gz":
        lab.write("c.jsonl.zst", zstd(CLAUDE.read_bytes()))
    lab.ingest()
    rows = lab.metrics()
    assert [(row["run_id"], row["events"], row["output_tokens"]) for row in rows] == [("night-0412/claude-a", 37, 811)]


# -- one run in several files


def halves(stream, at):
    lines = stream.read_bytes().splitlines(keepends=True)
    return b"".join(lines[:at]), b"".join(lines[at:])


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("stream", [CODEX, BLOCKED], ids=lambda path: path.parent.name)
def test_a_run_that_goes_on_in_another_file_is_one(lab, stream, names, together):
    parts = dict(zip(names, halves(stream, 15), strict=True))
    for name in sorted(parts):
        lab.write(f"{name}.jsonl", parts[name])
        if not together:
            lab.ingest()
    lab.ingest()
    (row,) = lab.metrics()
    lines = stream.read_bytes().count(b"\n")
    assert (row["events"] + row["refused_lines"], row["completeness"]) == (lines, "closed")
    assert lab.sql("SELECT count(*), count(DISTINCT piece) FROM run_pieces") == [(2, 2)]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_two_runs_of_one_name_are_two_whatever_their_order(lab, names):
    """Sequence numbers overlap, so these are two runs; the later by time is #2."""
    early = CLAUDE.read_bytes()
    late = early.replace(b'"at":"2026-09-20', b'"at":"2026-09-27').replace(
        b'"output_tokens":811', b'"output_tokens":1000'
    )
    assert late != early
    lab.write(f"{names[0]}.jsonl", early)
    lab.ingest()
    lab.write(f"{names[1]}.jsonl", late)
    lab.ingest()
    rows = {row["run_id"]: row["output_tokens"] for row in lab.metrics()}
    assert rows == {"night-0412/claude-a": 811, "night-0412/claude-a#2": 1000}
    assert lab.failed_checks() == {}


@pytest.mark.parametrize("stream", [CLAUDE, CODEX], ids=lambda path: path.stem)
def test_the_tokens_of_a_run_in_two_files_are_those_of_the_run(tmp_path, stream):
    whole, split = Lab(tmp_path / "whole"), Lab(tmp_path / "split")
    whole.write("a.jsonl", stream.read_bytes())
    for name, part in zip("ab", halves(stream, 15), strict=True):
        split.write(f"{name}.jsonl", part)
    whole.ingest()
    split.ingest()
    assert split.metrics() == whole.metrics()


def test_a_run_whose_start_is_not_there_guesses_no_cache(lab):
    lab.write("a.jsonl", halves(CLAUDE, 1)[1])
    lab.ingest()
    (row,) = lab.metrics()
    assert row["uncached_input_tokens"] in (None, 26)
    assert row["input_tokens"] in (None, 26 + 55050 + 18770)


# -- growing


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_a_file_that_grows_in_the_middle_of_lines_is_as_if_read_whole(tmp_path, stream):
    grown, whole = Lab(tmp_path), Lab(tmp_path, "whole")
    data = stream.read_bytes()
    path = grown.write("a.jsonl", b"")
    for end in (len(data) // 3, len(data) // 2, len(data) - 3, len(data)):
        path.write_bytes(data[:end])
        grown.ingest()
    whole.ingest()
    assert grown.content() == whole.content()


def test_only_what_is_new_is_reported(lab):
    data = CLAUDE.read_bytes()
    path = lab.write("a.jsonl", data[:4000])
    first = lab.ingest()
    path.write_bytes(data)
    second = lab.ingest()
    assert (second.files_grown, second.files_new) == (1, 0)
    assert first.events + second.events == 42
    assert first.lines + second.lines == 37
    assert first.pending_tails == 1, "a line that is pending counts when it is first seen"
    assert first.bytes_in + second.bytes_in == len(data)


def test_a_touched_file_is_not_read_into_the_lake_again(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    before = lab.content()
    os.utime(path, (1, 1))
    report = lab.ingest()
    assert (report.events, report.files_unchanged) == (0, 1)
    assert lab.content() == before


# -- rewritten, shrunk, replaced, vanished


@pytest.mark.parametrize("way", ["rewritten", "shrunk", "replaced", "grown with another beginning"])
def test_what_a_file_no_longer_holds_leaves_the_lake(tmp_path, way):
    lab, fresh = Lab(tmp_path), Lab(tmp_path, "fresh")
    lab.write("other.jsonl", RECORDED.read_bytes())
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    if way == "rewritten":
        path.write_bytes(CODEX.read_bytes())
    elif way == "shrunk":
        path.write_bytes(halves(CLAUDE, 10)[0])
    elif way == "replaced":
        beside = lab.write("b.tmp", TWO_RUNS.read_bytes())
        beside.replace(path)
    else:
        path.write_bytes(CODEX.read_bytes() + CLAUDE.read_bytes())
    report = lab.ingest()
    assert report.files_rewritten == 1
    fresh.ingest()
    assert lab.content() == fresh.content()


def test_a_file_of_the_same_size_with_other_bytes_is_rewritten(lab):
    data = CLAUDE.read_bytes()
    path = lab.write("a.jsonl", data)
    lab.ingest()
    path.write_bytes(data.replace(b'"output_tokens":811', b'"output_tokens":812'))
    os.utime(path, ns=(1, 1))
    assert lab.ingest().files_rewritten == 1
    assert lab.metrics()[0]["output_tokens"] == 812


def test_a_vanished_file_is_gone_and_kept_and_may_come_back(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", RECORDED.read_bytes())
    lab.ingest()
    before = lab.metrics()
    away = path.rename(path.with_suffix(".away"))
    report = lab.ingest()
    assert report.files_gone == 1
    assert lab.sql("SELECT status FROM sources ORDER BY path") == [("gone",), ("read",)]
    assert lab.metrics() == before
    away.rename(path)
    report = lab.ingest()
    assert (report.events, report.files_gone) == (0, 0)
    assert lab.sql("SELECT status FROM sources ORDER BY path") == [("read",), ("read",)]
    assert lab.metrics() == before


def test_a_vanished_file_comes_back_longer(lab):
    data = CLAUDE.read_bytes()
    path = lab.write("a.jsonl", data[:4000])
    lab.ingest()
    path.unlink()
    lab.ingest()
    path.write_bytes(data)
    lab.ingest()
    assert [(row["events"], row["completeness"]) for row in lab.metrics()] == [(37, "closed")]


def forbid(monkeypatch, path, error):
    """Tests run as root, whom no mode forbids: the file system's answer is made here."""
    real = reading.open_source

    def open_source(name, **options):
        if name == str(path):
            raise error
        return real(name, **options)

    monkeypatch.setattr(reading, "open_source", open_source)
    monkeypatch.setattr(contents, "open_source", open_source)


def test_an_unreadable_file_is_told_and_read_later(lab, monkeypatch):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", RECORDED.read_bytes())
    with monkeypatch.context() as patch:
        forbid(patch, path, PermissionError(13, "Permission denied"))
        report = lab.ingest()
    assert [(name, "ermission denied" in why) for name, why in report.problems] == [(str(path), True)]
    assert report.files_new == 1
    assert lab.ingest().files_new == 1
    assert len(lab.metrics()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_file_that_another_user_may_not_read_is_told():
    """The same with the kernel's own answer, in a process that dropped root."""
    script = (
        "import os, sys\n"
        "from analytics.ingest import ingest\n"
        "ingest(sys.argv[1] + '/as-root', [sys.argv[1]])  # whatever is imported late, is imported by who may read it\n"
        "os.setegid(65534); os.seteuid(65534)\n"
        "report = ingest(sys.argv[1] + '/lake', [sys.argv[1]])\n"
        "print(report.files_new, report.problems)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        for stream, mode in ((CLAUDE, 0o600), (CODEX, 0o644)):
            path = Path(name, stream.name)
            path.write_bytes(stream.read_bytes())
            path.chmod(mode)
        done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True)
    assert done.stdout.startswith("1 "), done.stderr
    assert f"{CLAUDE.name}', 'cannot be opened: Permission denied'" in done.stdout


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file or directory")]
)
def test_a_rewritten_file_that_cannot_be_read_keeps_its_rows(lab, monkeypatch, error):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    before = lab.content()
    path.write_bytes(CODEX.read_bytes())
    with monkeypatch.context() as patch:
        forbid(patch, path, error)
        report = lab.ingest()
    assert len(report.problems) == 1
    assert lab.content()["events"] == before["events"]
    assert lab.ingest().files_rewritten == 1
    assert [row["run_id"] for row in lab.metrics()] == ["cx-7731"]


def test_a_read_error_in_the_middle_of_a_file_costs_that_file_alone(lab, monkeypatch):
    monkeypatch.setattr(reading, "HEAD_BYTES", 1000)
    bad = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", RECORDED.read_bytes())
    real = reading.Plain.readinto
    size = bad.stat().st_size

    def readinto(self, view):
        if self._left < size - 2000 and os.fstat(self._file.fileno()).st_ino == bad.stat().st_ino:
            raise reading.SourceDefect("Input/output error")
        return real(self, view[:500])

    with monkeypatch.context() as patch:
        patch.setattr(reading.Plain, "readinto", readinto)
        report = lab.ingest()
    assert [name for name, _ in report.problems] == [str(bad)]
    assert report.refusals_by_reason == {"read_error": 1}
    cut = {row["run_id"]: row["completeness"] for row in lab.metrics()}
    assert cut == {"run_0001": "closed", "night-0412/claude-a": "truncated"}
    lab.ingest()
    assert {row["run_id"]: row["events"] for row in lab.metrics()} == {"run_0001": 38, "night-0412/claude-a": 37}
    assert lab.failed_checks() == {}


# -- names


NAMES = (
    b"new\nline.jsonl",
    b"quo'te\".jsonl",
    b"\xff\xfe.jsonl",
    "zażółć 🚀.jsonl".encode(),
    b"%2e%2e=x.jsonl",
    b"-.jsonl",
    b" .jsonl",
    b"back\\xff.jsonl",
    b"glob[1]*.jsonl",
    b"wire=x.jsonl",
)


def test_any_file_name_is_read_and_known_again(lab):
    paths = [os.fsencode(str(lab.sources)) + b"/" + name for name in NAMES]
    data = [CLAUDE.read_bytes().replace(b"night-0412/claude-a", b"run-%d" % n) for n in range(len(paths))]
    for path, content in zip(paths, data, strict=True):
        with open(path, "wb") as file:
            file.write(content[:4000])
    assert lab.ingest().files_new == len(NAMES)
    for path, content in zip(paths, data, strict=True):
        with open(path, "ab") as file:
            file.write(content[4000:])
    assert lab.ingest().files_grown == len(NAMES)
    assert lab.ingest().files_unchanged == len(NAMES)
    for path in paths:
        os.unlink(path)
    assert lab.ingest().files_gone == len(NAMES)
    assert [(row["events"], row["completeness"]) for row in lab.metrics()] == [(37, "closed")] * len(NAMES)
    stored = {os.path.basename(path) for (path,) in lab.sql("SELECT path FROM sources")}
    assert stored == {name.decode("utf-8", "backslashreplace") for name in NAMES}


RUN_IDS = (
    "a/b",
    "../../x",
    "q\"uo'te",
    "new\nline",
    "50%",
    "a=b",
    "🚀",
    "x" * 10_000,
    " ",
    "",
    "run#2",
    "run",
    "\0",
    "NULL",
    "=1+1",
    "Run",
)


def test_any_run_id_is_one_run(lab):
    for n, run_id in enumerate(RUN_IDS):
        quoted = json.dumps(run_id)[1:-1].encode()
        lab.write(f"{n}.jsonl", CLAUDE.read_bytes().replace(b"night-0412/claude-a", quoted))
    lab.ingest()
    rows = {row["run_id"]: (row["events"], row["tool_calls"], row["completeness"]) for row in lab.metrics()}
    assert rows == dict.fromkeys(RUN_IDS, (37, 5, "closed"))
    assert lab.failed_checks() == {}


def test_a_second_run_of_a_name_does_not_fall_on_another_run(lab):
    first = CLAUDE.read_bytes().replace(b"night-0412/claude-a", b"run")
    lab.write("a.jsonl", first)
    lab.write("b.jsonl", first.replace(b"811", b"812"))
    lab.write(
        "c.jsonl", first.replace(b'"run":"run"', b'"run":"run#2"').replace(b'"run_id":"run"', b'"run_id":"run#2"')
    )
    lab.ingest()
    assert lab.sql("SELECT events FROM run_metrics") == [(37,)] * 3


# -- compressed


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("codec", ["gz", "zst"])
def test_compressed_streams_say_the_same(tmp_path, stream, codec):
    """Nothing can follow in a compressed file, so its last line counts; a platonic line never without a newline."""
    data = stream.read_bytes()
    reader = Reader(tmp_path, redact=False)
    path = tmp_path / "a"
    path.write_bytes(data)
    plain = reader.read(path)[1]
    path.write_bytes(gzip.compress(data) if codec == "gz" else zstd(data))
    packed = reader.read(path)[1]
    assert packed.events == plain.events
    assert rebuild(packed) == data
    tail = data.split(b"\n")[-1]
    if plain.wire == "platonic-core" or not tail:
        assert packed.reasons() == plain.reasons()
        assert (
            packed.source["pending_bytes"]
            == plain.source["pending_bytes"]
            == (len(tail) if plain.wire != "harness-lab" else 0)
        )
    elif plain.source["shape"] != "generic":
        assert [*plain.reasons(), (plain.source["lines"], "not_json")] == packed.reasons()
        assert packed.source["pending_bytes"] == 0


@pytest.mark.parametrize("codec", ["gz", "zst"])
def test_members_and_frames_one_after_the_other_are_one_stream(tmp_path, codec):
    pack = gzip.compress if codec == "gz" else zstd
    reader, path = Reader(tmp_path), tmp_path / "a"
    data = CLAUDE.read_bytes()
    path.write_bytes(data)
    plain = reader.read(path)[1]
    path.write_bytes(b"".join(pack(data[at : at + 1000]) for at in range(0, len(data), 1000)))
    assert reader.read(path)[1].events == plain.events


@pytest.mark.parametrize("codec", ["gz", "zst"])
@pytest.mark.parametrize("harm", ["cut", "corrupt"])
def test_what_stands_before_a_defect_is_kept(tmp_path, codec, harm):
    """A copy that broke off: the whole lines before the defect are events, and the defect is told."""
    lines = [line for _ in range(40) for line in BLOCKED.read_bytes().splitlines(keepends=True)]
    noise = random.Random(3)
    lines = [line.replace(b"evt_", noise.randbytes(300).hex().encode() + b"_", 1) for line in lines]
    data = b"".join(lines)
    packed = bytearray(gzip.compress(data) if codec == "gz" else zstd(data))
    if harm == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\0" * 40
    path = tmp_path / "a"
    path.write_bytes(packed)
    reader = Reader(tmp_path, redact=False)
    record, made = reader.read(path)
    reasons = Counter(reason for _, reason in made.reasons())
    check_conservation(made)
    assert record.status == "read"
    if (
        harm == "cut" or codec == "gz"
    ):  # a zstd frame without a checksum may decode to other text, line by line not_json
        assert reasons["compressed_data_broken"] == 1
    if harm == "cut":
        assert sum(reasons.values()) <= 2, "beside it at most the line that was cut"
        assert len(made.events) > 100
        assert data.startswith(rebuild(made).removesuffix(b"\n"))
    assert record.row["size_bytes"] == len(packed)


def test_a_zip_bomb_is_refused_with_the_limit_told(tmp_path, monkeypatch):
    monkeypatch.setattr(reading.Compressed, "FREE_BYTES", 1 << 20)
    line = CLAUDE.read_bytes().splitlines(keepends=True)[0]
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(line + b" " * (8 << 20)))
    _, made = Reader(tmp_path, max_ratio=100).read(path)
    assert [reason for _, reason in made.reasons() if reason != "not_json"] == ["compression_ratio"]
    assert len(made.events) == 5, "the session's start and its four offered tools stand before it"


def test_gz_of_nothing_and_gz_by_name_only(lab):
    lab.write("empty.jsonl.gz", gzip.compress(b""))
    lab.write("plain.jsonl.gz", CLAUDE.read_bytes())
    lab.write("stub.jsonl.gz", b"\x1f\x8b")
    report = lab.ingest()
    assert report.files_new == 1, "content decides, not the name"
    assert lab.metrics()[0]["events"] == 37
    assert {os.path.basename(path) for path, _ in report.skipped} | {
        os.path.basename(path) for path, _ in report.problems
    } == {
        "empty.jsonl.gz",
        "stub.jsonl.gz",
    }


def test_a_grown_compressed_file_is_read_anew(tmp_path):
    lab, fresh = Lab(tmp_path), Lab(tmp_path, "fresh")
    data = CLAUDE.read_bytes()
    first = gzip.compress(b"".join(data.splitlines(keepends=True)[:10]))
    path = lab.write("a.jsonl.gz", first)
    lab.ingest()
    path.write_bytes(first + gzip.compress(b"".join(data.splitlines(keepends=True)[10:])))
    lab.ingest()
    fresh.ingest()
    assert lab.content() == fresh.content()
    assert lab.metrics()[0]["completeness"] == "closed"


def test_a_cut_gz_that_is_completed_is_read_anew(lab):
    packed = gzip.compress(CLAUDE.read_bytes())
    path = lab.write("a.jsonl.gz", packed[: len(packed) // 2])
    report = lab.ingest()
    assert "compressed_data_broken" in report.refusals_by_reason
    path.write_bytes(packed)
    lab.ingest()
    assert [(row["events"], row["refused_lines"]) for row in lab.metrics()] == [(37, 0)]
    assert lab.sql("SELECT count(*) FROM refusals") == [(0,)]


# -- stdin


class Stdin:
    """What the readers ask of sys.stdin."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BufferedReader(io.BytesIO(data))


def test_a_stream_is_a_source_and_counts_its_last_line(lab, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(CLAUDE.read_bytes().rstrip(b"\n")))
    report = lab.ingest("-")
    assert (report.files_new, report.lines) == (1, 37)
    assert [(row["events"], row["completeness"]) for row in lab.metrics()] == [(37, "closed")]


def test_the_same_stream_again_is_a_copy(lab, monkeypatch):
    for turn in range(2):
        monkeypatch.setattr(sys, "stdin", Stdin(CLAUDE.read_bytes()))
        report = lab.ingest("-")
        assert report.files_copied == turn
    assert [row["events"] for row in lab.metrics()] == [37]


def test_a_compressed_stream(lab, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(gzip.compress(BLOCKED.read_bytes())))
    lab.ingest("-")
    assert [row["events"] for row in lab.metrics()] == [39]


def test_a_stream_in_another_encoding_is_one_refusal(lab, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(CODEX.read_text().encode("utf-16")))
    assert lab.ingest("-").refusals_by_reason == {"not_utf8_file": 1}


@pytest.mark.parametrize("data", [b"", b"hello\n"], ids=["empty", "no wire"])
def test_a_stream_that_is_nothing_of_ours_is_no_crash(lab, monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", Stdin(data))
    report = lab.ingest("-")
    assert report.events == 0
    assert len(report.skipped) + len(report.problems) == 1


# -- files that are no streams


NO_STREAMS = (
    b"",
    b"\n\n",
    b" \t\r\n",
    b"a,b,c\n1,2,3\n",
    b"[1,2,3]\n",
    b"{}\n{}\n",
    b"null\n",
    b"\xef\xbb\xbf",
    b"{",
    b"\0" * 100,
    b"x" * 300_000,
)


def test_what_is_no_stream_is_skipped_with_the_reason(lab):
    paths = [lab.write(f"{n}.jsonl", data) for n, data in enumerate(NO_STREAMS)]
    report = lab.ingest()
    assert (report.files_new, report.events, report.files_refused) == (0, 0, 0)
    told = dict(report.skipped)
    assert all(told[str(path)] for path in paths)
    assert lab.ingest().files_unchanged == len(paths)
    for n, path in enumerate(paths):
        path.write_bytes(CLAUDE.read_bytes().replace(b"night-0412/claude-a", b"run-%d" % n))
    assert lab.ingest().files_new == len(paths)


ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32")


def test_a_file_in_another_encoding_is_one_refusal(lab):
    text = CODEX.read_text()
    paths = [lab.write(f"{name}.jsonl", text.replace("cx-7731", name).encode(name)) for name in ENCODINGS]
    report = lab.ingest()
    assert report.refusals_by_reason == {"not_utf8_file": len(ENCODINGS)}
    assert report.files_refused == len(ENCODINGS)
    rows = lab.sql("SELECT path, line, bytes, reason FROM refusals ORDER BY path")
    assert rows == [(str(path), None, path.stat().st_size, "not_utf8_file") for path in sorted(paths)]
    for name, path in zip(ENCODINGS, paths, strict=True):
        path.write_bytes(text.replace("cx-7731", name).encode())
    lab.ingest()
    assert lab.sql("SELECT count(*) FROM refusals WHERE line IS NULL") == [(0,)]
    assert lab.sql("SELECT events FROM run_metrics") == [(26,)] * len(ENCODINGS)


def test_pretty_printed_json_and_arrays_of_events_are_no_lines(lab):
    events = [json.loads(line) for line in BLOCKED.read_text().splitlines()]
    lab.write("array.json", json.dumps(events).encode())
    lab.write("pretty.json", json.dumps(events[0], indent=2).encode())
    report = lab.ingest()
    assert report.events == 0
    assert len(report.skipped) == 2


@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: path.stem)
def test_the_wire_named_by_hand_is_the_one_found_by_content(tmp_path, stream):
    sniffed, named = Lab(tmp_path), Lab(tmp_path, "named")
    sniffed.write("a", stream.read_bytes())
    wire = stream.parent.name
    sniffed.ingest(sniffed.sources / "a")
    named.ingest(named.sources / "a", wire=wire)
    assert named.content() == sniffed.content()


def test_a_wrong_wire_refuses_each_line_and_loses_none(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    report = lab.ingest(wire="platonic-core")
    assert (report.events, report.lines, sum(report.refusals_by_reason.values())) == (0, 37, 37)
    lab.ingest(path, wire="metaharness")
    assert lab.metrics()[0]["events"] == 37
    assert lab.sql("SELECT count(*) FROM refusals") == [(0,)]
    with pytest.raises(RunlakeError, match="metaharnes"):
        lab.ingest(wire="metaharnes")


# -- bad lines


def test_one_bad_line_among_twenty_thousand(lab):
    """It costs one refusal, with its path, line, offset and reason; every other line is an event."""
    line = b'{"format":"metaharness.event/1","seq":%d,"run":"long","event":"text","text":"word %d","request_id":null}\n'
    lines = [line % (n, n) for n in range(1, 20_001)]
    lines[12_345] = b'{"format":"metaharness.event/1","seq":12346,"run":"long","event":"te\n'
    data = b"".join(lines)
    path = lab.write("a.jsonl", data)
    lab.ingest()
    offset = sum(map(len, lines[:12_345]))
    rows = lab.sql("SELECT path, line, byte_offset, bytes, reason, raw FROM refusals")
    assert rows == [(str(path), 12_346, offset, len(lines[12_345]) - 1, "not_json", lines[12_345].rstrip())]
    assert lab.sql("SELECT count(*), min(line), max(line), count(DISTINCT line) FROM events") == [
        (19_999, 1, 20_000, 19_999)
    ]
    assert lab.sql("SELECT count(*) FROM events WHERE payload IS NULL OR byte_offset < 0") == [(0,)]


START = CLAUDE.read_bytes().splitlines(keepends=True)[0]
HEAD = b'{"format":"metaharness.event/1","seq":2,"run":"r",'
USAGE = HEAD + b'"event":"usage","request_id":"q","model":"m","usage":{"input_tokens":%s}}\n'
TEXT = HEAD + b'"event":"text","text":%s,"request_id":null}\n'
LINES = {
    "two objects": (TEXT[:-1] % b'"a"' + TEXT % b'"b"', "trailing_text"),
    "trailing text": (TEXT[:-1] % b'"a"' + b" and more\n", "trailing_text"),
    "invalid UTF-8": (TEXT % b'"\xff"', "invalid_utf8"),
    "invalid UTF-8 in a field nobody reads": (TEXT.replace(b"null", b'null,"x":"\xff"') % b'"a"', "invalid_utf8"),
    "NUL bytes": (b"\0" * 50 + b"\n", "nul_byte"),
    "NUL in a string": (TEXT % b'"a\0b"', "nul_byte"),
    "an array": (b"[1]\n", "not_an_object"),
    "a number": (b"17\n", "not_an_object"),
    "a string": (b'"text"\n', "not_an_object"),
    "null": (b"null\n", "not_an_object"),
    "plain text": (b"hello\n", "not_json"),
    "torn": (TEXT[:60] + b"\n", "not_json"),
    "NaN": (USAGE % b"NaN", "not_json"),
    "Infinity": (USAGE % b"Infinity", "not_json"),
    "a lone surrogate": (TEXT % b'"\\ud800"', "not_json"),
    "a fraction": (USAGE % b"10.5", "malformed"),
    "a negative count": (USAGE % b"-1", "malformed"),
    "a count beyond all use": (USAGE % b"1000000000000001", "number_out_of_range"),
    "a count of 64 bits": (USAGE % b"9223372036854775807", "number_out_of_range"),
    "a count beyond 64 bits": (USAGE % b"9223372036854775808", "number_out_of_range"),
    "a count beyond 128 bits": (USAGE % (b"9" * 40), "number_out_of_range"),
    "a text for a count": (USAGE % b'"7"', "malformed"),
    "no format": (TEXT.replace(b'"format":"metaharness.event/1",', b"") % b'"a"', "unknown_format"),
    "another version": (TEXT.replace(b"event/1", b"event/2") % b'"a"', "unknown_format"),
    "an unknown event": (TEXT.replace(b'"text","text"', b'"texts","text"') % b'"a"', "unknown_event"),
    "an event in another case": (TEXT.replace(b'"text","text"', b'"Text","text"') % b'"a"', "unknown_event"),
    "a missing field": (TEXT.replace(b'"text":%s,', b""), "malformed"),
    "nested too deep": (TEXT % (b"[" * 10_000 + b"]" * 10_000), "too_deep"),
}
GOOD = {
    "lone CR in a string": TEXT % b'"a\\rb"',
    "line separators in a string": TEXT % '"a\u2028b\u2029c\u0085d"'.encode(),
    "a pair of surrogates": TEXT % b'"\\ud83d\\ude80"',
    "duplicate keys": TEXT.replace(b'"seq":2', b'"seq":9,"seq":2') % b'"a"',
    "keys that differ in case": TEXT.replace(b'"seq":2', b'"SEQ":9,"seq":2') % b'"a"',
    "an escaped NUL": TEXT % b'"a\\u0000b"',
    "unknown fields": TEXT.replace(b"null", b'null,"n":{"deep":[1,{"x":1e400}]}'.replace(b"1e400", b"1e300")) % b'"a"',
    "spaces around": b"  " + TEXT[:-1] % b'"a"' + b"  \t\r\n",
    "the largest counter": USAGE % b"1000000000000000",
}


@pytest.mark.parametrize("name", LINES)
def test_each_bad_line_is_refused_by_its_reason_and_costs_itself_alone(tmp_path, name):
    line, reason = LINES[name]
    path, reader = tmp_path / "a.jsonl", Reader(tmp_path)
    data = START + line + TEXT % b'"after"'
    path.write_bytes(data)
    _, made = reader.read(path)
    assert made.reasons() == [(2, reason)]
    assert {row["line"] for row in made.events} == {1, 3}
    assert made.refusals[0]["byte_offset"] == len(START)
    check_conservation(made)
    assert rebuild(made) == data


@pytest.mark.parametrize("name", GOOD)
def test_each_odd_line_is_an_event(tmp_path, name):
    path, reader = tmp_path / "a.jsonl", Reader(tmp_path)
    data = START + GOOD[name] + TEXT % b'"after"'
    path.write_bytes(data)
    _, made = reader.read(path)
    assert made.reasons() == []
    assert [row["line"] for row in made.events if row["part"] == 0] == [1, 2, 3]
    assert [row["seq"] for row in made.events if row["part"] == 0][1] == 2
    assert rebuild(made) == data


# -- long lines


@pytest.mark.parametrize("block", [4096, 8 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("size", [9_999, 10_001, 300_000])
def test_a_line_beyond_the_limit_is_one_refusal(tmp_path, monkeypatch, block, end, size):
    monkeypatch.setattr(feeding, "BLOCK_BYTES", block)
    monkeypatch.setattr(reading, "HEAD_BYTES", 2048)
    filler = b"x" * (size - len(TEXT % b'""') + 1 - (end == b"\r\n"))
    long = (TEXT % (b'"' + filler + b'"')).rstrip(b"\n") + end
    assert len(long.rstrip(b"\n")) == size or not end
    data = START + long + (TEXT % b'"after"' if end else b"")
    path, reader = tmp_path / "a.jsonl", Reader(tmp_path, max_line_bytes=10_000)
    path.write_bytes(data)
    record, made = reader.read(path)
    lines = {row["line"] for row in made.events}
    if end and size > 10_000:
        assert made.reasons() == [(2, "line_too_long")]
        assert (made.refusals[0]["bytes"], made.refusals[0]["byte_offset"]) == (size, len(START))
        assert "10000" in made.refusals[0]["detail"]
        assert lines == {1, 3}
    elif end:
        assert (made.reasons(), lines) == ([], {1, 2, 3})
    assert record.row["bytes_read"] + record.row["pending_bytes"] == len(data)
    check_conservation(made)
    if size > 10_000 and end:
        _, raised = Reader(tmp_path, max_line_bytes=1 << 20).read(path)
        assert raised.reasons() == []


def test_a_long_last_line_that_grows_is_read_when_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(feeding, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(reading, "HEAD_BYTES", 2048)
    data = START + TEXT % (b'"' + b"x" * 60_000 + b'"') + TEXT % b'"after"'
    path, reader = tmp_path / "a.jsonl", Reader(tmp_path, max_line_bytes=10_000)
    path.write_bytes(data)
    whole = reader.read(path)[1]
    grown = reader.grow(path, data, [len(START) + 100, len(START) + 20_000, len(START) + 50_000])
    assert grown.comparable() == whole.comparable()


# -- the export document


def export(*runs, **more) -> bytes:
    return json.dumps({"schema_version": "2", "experiment": {"id": "e"}, "runs": list(runs), **more}, indent=1).encode()


def events_of(stream) -> list[dict]:
    made = [json.loads(line) for line in stream.read_text().splitlines()]
    return [{name: value for name, value in event.items() if name != "run_id"} for event in made]


WHOLE = {"id": "run_whole", "events": events_of(BLOCKED)}
CUT = {"id": "run_cut", "events": events_of(BLOCKED)[:20]}


def test_a_document_says_what_the_lines_say(tmp_path):
    lines, document = Lab(tmp_path / "lines"), Lab(tmp_path / "document")
    lines.write("a.jsonl", BLOCKED.read_bytes())
    document.write("a.json", export({"id": "run_0n1aclaude", "events": events_of(BLOCKED)}))
    lines.ingest()
    document.ingest()
    assert document.metrics() == lines.metrics()


@pytest.mark.parametrize("way", ["indented", "compact", "with a newline", "CRLF", "blank lines before"])
def test_a_document_gives_its_bytes_back(tmp_path, way):
    data = export(WHOLE, CUT)
    if way in ("compact", "with a newline"):
        data = json.dumps(json.loads(data)).encode() + (b"\n" if way == "with a newline" else b"")
    elif way == "CRLF":
        data = data.replace(b"\n", b"\r\n")
    elif way == "blank lines before":
        data = b"\n\n " + data
    path = tmp_path / "a.json"
    path.write_bytes(data)
    _, made = Reader(tmp_path, redact=False).read(path)
    assert rebuild(made) == data
    check_conservation(made)
    assert [(piece["run_id"], piece["lines"]) for piece in made.source["runs"]] == [("run_cut", 20), ("run_whole", 39)]
    for row in made.events:
        if row["part"] == 0:
            assert data[row["byte_offset"] :].startswith(row["payload"].encode())


def test_a_bad_event_in_a_document_costs_itself_alone(lab):
    events = [
        *events_of(BLOCKED)[:2],
        5,
        {"kind": "telemetry", "sequence": 9},
        {"kind": "usage"},
        "x",
        *events_of(BLOCKED)[2:],
    ]
    lab.write("a.json", export({"id": "run_x", "events": events}))
    lab.ingest()
    assert lab.sql("SELECT line, reason FROM refusals ORDER BY line") == [
        (3, "not_an_object"),
        (4, "unknown_event"),
        (5, "malformed"),
        (6, "not_an_object"),
    ]
    assert [(row["run_id"], row["events"], row["refused_lines"]) for row in lab.metrics()] == [("run_x", 39, 4)]
    assert lab.failed_checks() == {}


@pytest.mark.parametrize(
    "harm", ["torn", "another version", "runs is no list", "a run without an id", "a NUL byte", "nested too deep"]
)
def test_a_document_of_another_shape_is_one_refusal(lab, harm):
    data = export(WHOLE)
    if harm == "torn":
        data = data[:-300]
    elif harm == "another version":
        data = export(WHOLE, schema_version="3")
    elif harm == "runs is no list":
        data = export(WHOLE, runs={"a": 1})
    elif harm == "a run without an id":
        data = export({"id": "", "events": WHOLE["events"]})
    elif harm == "a NUL byte":
        data = data.replace(b'"e"', b'"e\0"')
    else:
        data = data.replace(b'"e"', b"[" * 5000 + b"]" * 5000)
    path = lab.write("a.json", data)
    report = lab.ingest()
    assert report.refusals_by_reason == {"document_malformed": 1}
    assert lab.sql("SELECT line, bytes FROM refusals") == [(None, len(data))]
    path.write_bytes(export(WHOLE))
    lab.ingest()
    assert lab.sql("SELECT count(*) FROM refusals") == [(0,)]
    assert lab.metrics()[0]["events"] == 39


def test_a_document_refused_whole_is_told(lab):
    lab.write("a.json", export(WHOLE)[:-300])
    report = lab.ingest()
    assert report.files_refused == 1
    assert lab.sql("SELECT status FROM sources") == [("refused",)]


def test_a_document_may_begin_with_a_byte_order_mark(tmp_path):
    data = b"\xef\xbb\xbf" + export(WHOLE)
    path = tmp_path / "a.json"
    path.write_bytes(data)
    _, made = Reader(tmp_path, redact=False).read(path)
    assert len(made.events) == 39
    assert rebuild(made) == data


@pytest.mark.parametrize("place", ["in a field nobody reads", "outside the events", "in a text"])
def test_bytes_that_are_not_utf8_in_a_document_are_no_crash_and_not_lost(tmp_path, place):
    marked = [*events_of(BLOCKED)]
    if place == "in a text":
        at = next(n for n, event in enumerate(marked) if event["kind"] == "assistant_message")
        marked[at] = {**marked[at], "payload": {"text": "HERE"}}
    else:
        marked[3] = {**marked[3], "note": "HERE" if place == "in a field nobody reads" else "-"}
    data = export({"id": "run_x", "events": marked}, note="HERE" if place == "outside the events" else "-")
    data = data.replace(b"HERE", b"\xff")
    path = tmp_path / "a.json"
    path.write_bytes(data)
    _, made = Reader(tmp_path, redact=False).read(path)
    if made.source["skeleton"] is None:
        assert [row["line"] for row in made.refusals] == [None]
        assert made.refusals[0]["raw"] == data
    else:
        assert len(made.events) in (38, 39)
        assert rebuild(made) == data


def test_a_document_is_known_again_and_replaced_when_it_changes(lab):
    path = lab.write("a.json", export(CUT))
    lab.ingest()
    assert lab.ingest().files_unchanged == 1
    path.write_bytes(export(CUT, WHOLE))
    lab.ingest()
    assert {row["run_id"]: row["events"] for row in lab.metrics()} == {"run_cut": 20, "run_whole": 39}


# -- what is said of it all


def test_the_report_is_what_the_lake_holds(lab):
    streams = [*STREAMS, SANITIZED]
    for stream in streams:
        lab.write(stream.name, stream.read_bytes())
    report = lab.ingest(SAMPLES, lab.sources)
    (said,) = lab.sql(
        "SELECT CAST(sum(lines) AS BIGINT), CAST(sum(events) AS BIGINT), CAST(sum(refusals) AS BIGINT),"
        " CAST(sum(bytes_read) AS BIGINT),"
        " count(*) FILTER (WHERE pending_bytes > 0) FROM sources WHERE status = 'read'"
    )
    assert (
        report.lines,
        report.events,
        sum(report.refusals_by_reason.values()),
        report.bytes_in,
        report.pending_tails,
    ) == said
    assert lab.sql("SELECT count(*) FROM stored_events") == [(report.events,)]
    assert report.files_new == len(streams) == report.files_copied
    assert lab.failed_checks() == {}


def test_progress_ends_at_all_bytes(lab):
    for stream in STREAMS:
        lab.write(stream.name, stream.read_bytes())
    seen = []
    lab.ingest(progress=lambda **facts: seen.append(facts))
    assert seen[-1]["bytes_done"] == seen[-1]["bytes_total"] == sum(stream.stat().st_size for stream in STREAMS)
    assert [one["bytes_done"] for one in seen] == sorted(one["bytes_done"] for one in seen)
