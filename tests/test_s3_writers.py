"""Many writers, one lake in an object store: without a lock, and without a row lost or doubled."""

from __future__ import annotations

import signal
import time

import pytest
from conftest import CORPUS
from objectstore import Fault

from analytics import commits, open_lake
from analytics.cli import run
from analytics.errors import LakeError, Overtaken
from analytics.ingest import ingest

WRITER = """
import sys
from analytics.ingest import ingest
lake, text, name, commits = sys.argv[1:]
line = text.encode().decode("unicode_escape").encode()
for number in range(int(commits)):
    path = f"{name}-{number}.jsonl"
    with open(path, "wb") as file:
        file.write(line.replace(b"RUN", f"{name}-{number}".encode()))
    report = ingest(lake, [path], jobs=1)
    assert (report.files_new, report.lines) == (1, 2), report
"""
LINES = (
    '{"type":"thread.started","thread_id":"RUN"}\\n'
    '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":3}}\\n'
)


def streams(count):
    return [path.read_bytes() for path in sorted((CORPUS / "metaharness").rglob("*.jsonl"))[:count]]


def half(data):
    return data[: data.index(b"\n", len(data) // 2) + 1]


def finish(process, seconds=240):
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    return out


def wait_for(bucket, request):
    """Until the store was asked this by another process."""
    deadline = time.monotonic() + 120
    while not bucket.store.asked(request):
        assert time.monotonic() < deadline, request
        time.sleep(0.2)


def run_ids(lake):
    return [run for (run,) in lake.sql("SELECT run_id FROM runs ORDER BY run_id").fetchall()]


@pytest.mark.parametrize("commits", [3, pytest.param(20, marks=pytest.mark.long)])
def test_two_writers_at_once_lose_no_commit_and_double_none(bucket, tmp_path, monkeypatch, commits):
    monkeypatch.chdir(tmp_path)
    names = ("north", "south")
    lake = bucket.url("lake")  # made by whoever comes first
    writers = [
        bucket.start(lake, LINES, name, str(commits), program=("-c", WRITER), RUNLAKE_HOST=name) for name in names
    ]
    for writer in writers:
        finish(writer)
    made = open_lake(lake)
    assert made.version == 2 * commits
    assert run_ids(made) == sorted(f"{name}-{number}" for name in names for number in range(commits))
    hosts = made.sql("SELECT host, count(*), sum(lines) FROM sources GROUP BY host ORDER BY host").fetchall()
    assert hosts == [("north", commits, 2 * commits), ("south", commits, 2 * commits)]
    assert made.sql("SELECT sum(input_tokens), count(*) FROM usage").fetchall() == [(20 * commits, 2 * commits)]
    assert [name for name, rows in made.check().items() if rows.fetchall()] == []
    ids = [one["ingest_id"] for one in made.history()]
    assert len(set(ids)) == 2 * commits + 1


def overtake(monkeypatch, act):
    """Lets `act` happen once, between the plan of the next commit and the commit."""
    real, acts = commits.commit, [act]

    def commit(*arguments, **more):
        if acts:
            acts.pop()()
        return real(*arguments, **more)

    monkeypatch.setattr(commits, "commit", commit)


def same_as_alone(lake, bucket, folder):
    """The lake's events are those of a lake that one writer filled from what is there now."""
    alone = open_lake(folder / "alone", create=True)
    alone.ingest(bucket.url("in"))
    query = "SELECT * EXCLUDE (position) FROM events ORDER BY ALL"
    return lake.sql(query).fetchall() == alone.sql(query).fetchall()


def test_who_reads_the_same_new_object_at_once_reads_it_once(bucket, monkeypatch, tmp_path):
    data, other = streams(2)
    bucket.put("in/a.jsonl", data)
    bucket.put("in/b.jsonl", other)
    lake = open_lake(bucket.url("lake"), create=True)
    overtake(monkeypatch, lambda: ingest(bucket.url("lake"), [bucket.url("in/a.jsonl")]))
    report = lake.ingest(bucket.url("in"))
    assert (report.files_new, report.files_unchanged) == (1, 1)  # b is ours, a was theirs
    assert lake.version == 2
    assert same_as_alone(lake, bucket, tmp_path)
    assert [name for name, rows in lake.check().items() if rows.fetchall()] == []


def test_who_reads_on_in_the_same_object_at_once_reads_on_once(bucket, monkeypatch, tmp_path):
    (data,) = streams(1)
    path = bucket.put("in/a.jsonl", half(data))
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(path)
    bucket.put("in/a.jsonl", data)
    overtake(monkeypatch, lambda: ingest(bucket.url("lake"), [path]))
    report = lake.ingest(path)
    assert (report.files_grown, report.files_unchanged, report.events) == (0, 1, 0)
    assert same_as_alone(lake, bucket, tmp_path)
    assert [name for name, rows in lake.check().items() if rows.fetchall()] == []


def test_a_replacement_that_was_overtaken_by_compaction_is_made_anew(bucket, monkeypatch, tmp_path):
    first, second, third = streams(3)
    bucket.put("in/a.jsonl", first)
    lake = open_lake(bucket.url("lake"), create=True)
    lake.ingest(bucket.url("in"))
    bucket.put("in/b.jsonl", second)
    lake.ingest(bucket.url("in"))
    bucket.put("in/b.jsonl", half(second))  # a rewrite: its rows stand in a file that goes
    bucket.put("in/c.jsonl", third)
    overtake(monkeypatch, open_lake(bucket.url("lake")).store.compact)
    report = lake.ingest(bucket.url("in"))
    assert (report.files_rewritten, report.files_new, report.files_unchanged) == (1, 1, 1)
    assert same_as_alone(lake, bucket, tmp_path)


def test_a_compaction_that_was_overtaken_is_done_again(bucket, monkeypatch, tmp_path):
    data = streams(2)
    lake = open_lake(bucket.url("lake"), create=True)
    for number, one in enumerate(data):
        bucket.put(f"in/{number}.jsonl", one)
        lake.ingest(bucket.url("in"))
    bucket.put("in/0.jsonl", half(data[0]))
    overtake(monkeypatch, lambda: ingest(bucket.url("lake"), [bucket.url("in")]))
    store, saved = lake.store.compact()
    assert saved.files_before > saved.files_after
    assert same_as_alone(lake.latest(), bucket, tmp_path)
    assert store.version == 4


def test_what_is_overtaken_each_time_ends_in_a_sentence(bucket, monkeypatch):
    def never(*_arguments, **_more):
        raise Overtaken("made for a test")

    lake = open_lake(bucket.url("lake"), create=True)
    monkeypatch.setattr(commits, "commit", never)
    monkeypatch.setattr("analytics.retrying.MOST_TRIES", 3)
    with pytest.raises(LakeError, match=r"Other writers read the same sources .* 3 times"):
        lake.ingest(bucket.put("in/a.jsonl", streams(1)[0]))
    assert [key for key in bucket.listing("lake/record=event") if "none" not in key] == []  # nothing is left behind


def test_two_who_make_a_lake_at_once_make_one(bucket):
    paths = [bucket.put(f"in/{number}.jsonl", data) for number, data in enumerate(streams(2))]
    bucket.store.fail(Fault(r"PUT .*_delta_log/0+\.json", status="200", delay=6.0, times=1))
    slow = bucket.start("--lake", bucket.url("lake"), "ingest", paths[0])
    wait_for(bucket, r"PUT .*_delta_log/0+\.json")
    ingest(bucket.url("lake"), paths[1:])  # saw no lake, and is first
    finish(slow)
    lake = open_lake(bucket.url("lake"))
    assert [one["note"] for one in lake.history()] == ["ingest of 1 sources"] * 2 + ["new lake"]
    assert lake.sql("SELECT count(*) FROM sources").fetchall() == [(2,)]


def test_requests_that_two_hosts_have_seen_are_counted_once(bucket, tmp_path):
    """The same session file stands on two hosts, on one of them longer."""
    data = next((CORPUS / "claude").rglob("*.jsonl")).read_bytes()
    for name, text in (("north", half(data)), ("south", data)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.jsonl").write_bytes(text)
    lake = bucket.url("lake")
    for name in ("north", "south"):
        assert run(["--lake", lake, "ingest", str(tmp_path / name), "--host", name]) == 0
    once = open_lake(tmp_path / "once", create=True)
    once.ingest(tmp_path / "south")
    both = open_lake(lake)
    assert both.sql("SELECT host FROM sources ORDER BY host").fetchall() == [("north",), ("south",)]
    total = "SELECT sum(input_tokens), sum(output_tokens), count(*) FROM usage"
    assert both.sql(total).fetchall() == once.sql(total).fetchall()
    assert both.sql("SELECT count(*) FROM runs").fetchall() == once.sql("SELECT count(*) FROM runs").fetchall()


@pytest.mark.kill
def test_a_killed_writer_leaves_nothing_that_is_seen(bucket, tmp_path):
    bucket.upload(CORPUS / "metaharness", "in")
    lake = bucket.url("lake")
    ingest(lake, [bucket.url(bucket.listing("in")[0])])
    before = open_lake(lake)
    seen = before.sql("FROM events ORDER BY ALL").fetchall()
    bucket.store.fail(Fault(r"PUT .*_delta_log/0+2\.json", delay=600.0))  # the commit never arrives
    bucket.store.forget()
    writer = bucket.start("--lake", lake, "ingest", bucket.url("in"))
    wait_for(bucket, r"PUT .*_delta_log")
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    bucket.store.fail()
    now = open_lake(lake)
    assert (now.version, now.sql("FROM events ORDER BY ALL").fetchall()) == (before.version, seen)
    live = {file.relative for file in now.store.all_files}
    assert any(key.removeprefix("lake/") not in live for key in bucket.listing("lake/record=event"))  # what it left
    assert ingest(lake, [bucket.url("in")]).version == 2
    assert same_as_alone(open_lake(lake), bucket, tmp_path)
