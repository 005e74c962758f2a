"""Objects as sources: the rules are those of files, whichever host reads them, into whichever lake."""

from __future__ import annotations

import gzip

import pyarrow.parquet as pq
from conftest import CORPUS

from analytics import open_lake
from analytics.cli import run
from analytics.discover import discover
from analytics.ingest import ingest

RUN = CORPUS / "metaharness"


def streams(count):
    """Some streams of the corpus, as bytes."""
    return [path.read_bytes() for path in sorted(RUN.rglob("*.jsonl"))[:count]]


def half(data):
    """About the first half of a stream, in whole lines."""
    return data[: data.index(b"\n", len(data) // 2) + 1]


def rows(lake, columns="* EXCLUDE (source_id)"):
    return lake.sql(f"SELECT {columns} FROM events ORDER BY ALL").fetchall()


def test_objects_are_read_like_files(bucket, tmp_path):
    whole, grows, packed = streams(3)
    for number, data in enumerate((whole, half(grows))):
        (tmp_path / f"{number}.jsonl").write_bytes(data)
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress(packed))
    (tmp_path / "notes.md").write_bytes(b"no stream")
    bucket.upload(tmp_path, "in")
    here = open_lake(tmp_path / "lake", create=True)
    there = open_lake(tmp_path / "lake-of-objects", create=True)
    for data in (None, grows):
        if data is not None:
            (tmp_path / "1.jsonl").write_bytes(data)
            bucket.put("in/1.jsonl", data)
        first, second = here.ingest(sorted(map(str, tmp_path.glob("*.*")))[:-1]), there.ingest(bucket.url("in"))
        assert (second.events, second.lines, second.files_grown) == (first.events, first.lines, first.files_grown)
        assert rows(there) == rows(here)
    assert second.files_grown == 1
    assert there.ingest(bucket.url("in")).files_unchanged == 3
    columns = "bytes_read, digest, lines, events, compression, wire, status"
    states = [lake.sql(f"SELECT {columns} FROM sources ORDER BY ALL").fetchall() for lake in (here, there)]
    assert states[0] == states[1]


def test_an_object_written_over_is_read_anew_and_one_that_is_gone_is_kept(bucket, tmp_path):
    first, second = streams(2)
    bucket.put("in/a.jsonl", first)
    path = bucket.put("in/b.jsonl", second)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(bucket.url("in"))
    bucket.put("in/b.jsonl", half(second))
    assert lake.ingest(bucket.url("in")).files_rewritten == 1
    bucket.client.delete_object(Bucket=bucket.name, Key="in/b.jsonl")
    before = rows(lake)
    assert lake.ingest(bucket.url("in")).files_gone == 1
    assert rows(lake) == before
    assert lake.sql(f"SELECT status FROM sources WHERE path = '{path}'").fetchall() == [("gone",)]
    bucket.put("in/b.jsonl", half(second))
    assert lake.ingest(bucket.url("in")).files_unchanged == 2
    assert rows(lake) == before


def event_files(lake):
    return {file.relative: file for file in lake.store.all_files if file.record == "event"}


def test_of_a_grown_object_only_what_is_new_is_written(bucket, tmp_path):
    (data,) = streams(1)
    bucket.put("in/a.jsonl", half(data))
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(bucket.url("in"))
    before, events = event_files(lake), len(rows(lake))
    bucket.put("in/a.jsonl", data)
    bucket.store.forget()
    report = lake.ingest(bucket.url("in"))
    assert (report.files_grown, report.lines) == (1, data.count(b"\n") - half(data).count(b"\n"))
    assert bucket.store.asked("GET .*a.jsonl") == 2  # to tell grown from rewritten, and to read on
    assert before.items() <= event_files(lake).items()
    (new,) = event_files(lake).keys() - before.keys()
    assert pq.read_metadata(lake.path / new).num_rows == len(rows(lake)) - events == report.events


def test_equal_ends_do_not_hide_a_changed_middle(bucket, tmp_path):
    (data,) = streams(1)
    bucket.put("in/a.jsonl", half(data))
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(bucket.url("in"))
    first, second, *rest = data.splitlines(keepends=True)
    changed = first + second.replace(b'"seq":2', b'"seq":7').replace(b'"seq": 2', b'"seq": 7') + b"".join(rest)
    assert len(changed) == len(data)
    assert changed != data
    bucket.put("in/a.jsonl", changed)
    assert lake.ingest(bucket.url("in")).files_rewritten == 1
    stored = {payload for (payload,) in lake.sql("SELECT payload FROM stored_events").fetchall()}
    stored |= {raw.decode() for (raw,) in lake.sql("SELECT raw FROM stored_refusals").fetchall()}
    assert changed.splitlines()[1].decode() in stored
    assert second.decode().rstrip() not in stored


def test_the_same_content_again_is_a_copy(bucket, tmp_path):
    (data,) = streams(1)
    bucket.put("in/a.jsonl", data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(bucket.url("in"))
    bucket.put("in/b.jsonl", data)
    assert lake.ingest(bucket.url("in")).files_copied == 1


def test_a_listing_costs_no_reading(bucket, tmp_path):
    bucket.put("in/a.jsonl", streams(1)[0])
    ingest(tmp_path / "lake", [bucket.url("in")])
    bucket.store.forget()
    assert ingest(tmp_path / "lake", [bucket.url("in")]).files_unchanged == 1
    assert bucket.store.asked("GET .*a.jsonl") == 0


def found(*paths):
    """Keys of what is found, and what is said of the rest."""
    seen = discover(paths)
    keys = [one.path.split("/", 3)[3] for one in seen.found]
    return keys, [(problem.path.split("/", 3)[3], problem.reason) for problem in seen.problems]


def test_what_is_taken_below_a_prefix(bucket):
    for key in (
        "in/a.jsonl", "in/deep/er/b.NDJSON", "in/.hidden/c.log", "in/d.txt.zst", "in/e.parquet", "in/folder/",
        "in/s.jsonl", "in/s/tool-results/x.txt", "in/t.jsonl", "in/t.meta.json", "in-other/f.jsonl",
        "in/lake/_delta_log/00000000000000000000.json", "in/lake/record=event/x.json",
    ):  # fmt: skip
        bucket.put(key, b"{}\n")
    keys, problems = found(bucket.url("in"))
    taken = ["in/.hidden/c.log", "in/a.jsonl", "in/d.txt.zst", "in/deep/er/b.NDJSON", "in/s.jsonl", "in/t.jsonl"]
    assert keys == taken
    assert problems == [("in/lake", "it is a lake (a Delta table)")]
    assert discover([bucket.url("in")]).ignored == 3  # another suffix, what a tool printed, what is noted beside
    assert found(bucket.url("in/lake")) == ([], [("in/lake", "it is a lake (a Delta table), or inside one")])
    assert found(bucket.url("in/lake/record=event"))[1][0][1] == "it is a lake (a Delta table), or inside one"
    assert found(bucket.url("in/e.parquet"))[0] == ["in/e.parquet"]  # named, any suffix is good


def test_globs_mean_what_they_mean_on_disk(bucket, tmp_path):
    keys = ["a/1.jsonl", "a/2.jsonl", "a/b/3.jsonl", "a/b/c/4.jsonl", "a/b/5.bin", "a/[x].jsonl", "z/9.jsonl"]
    for key in keys:
        bucket.put(key, b"{}\n")
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"{}\n")
    for pattern in ("a/*.jsonl", "*/[12].jsonl", "**/*.jsonl", "a/**", "a/b*", "a/?.jsonl", "*", "a/*/c/*", "**/5.*"):
        here = [one.path.removeprefix(f"{tmp_path}/") for one in discover([f"{tmp_path}/{pattern}"]).found]
        assert found(f"s3://{bucket.name}/{pattern}")[0] == here, pattern
        assert here, pattern
    assert found(bucket.url("a/[x].jsonl"))[0] == ["a/[x].jsonl"]  # what is there is meant, not the pattern
    assert found(bucket.url("no/*.jsonl")) == ([], [("no/*.jsonl", "no object matches the pattern")])


def test_an_object_is_one_source_to_all_hosts(bucket, monkeypatch):
    (data,) = streams(1)
    path = bucket.put("in/a.jsonl", half(data))
    lake = open_lake(bucket.url("lake"), create=True)
    monkeypatch.setenv("RUNLAKE_HOST", "north")
    lake.ingest(path)
    bucket.put("in/a.jsonl", data)
    monkeypatch.setenv("RUNLAKE_HOST", "south")
    assert lake.ingest(bucket.url("in")).files_grown == 1
    assert lake.sql("SELECT host, revision, path FROM sources").fetchall() == [("south", 2, path)]
    bucket.client.delete_object(Bucket=bucket.name, Key="in/a.jsonl")
    monkeypatch.setenv("RUNLAKE_HOST", "west")
    assert lake.ingest(bucket.url("in")).files_gone == 1


def test_two_spellings_are_one_source(bucket, tmp_path):
    path = bucket.put("in/a.jsonl", streams(1)[0])
    lake = open_lake(tmp_path / "lake", create=True)
    assert lake.ingest(path, path.replace("s3://", "s3a://"), f"{bucket.url('in')}/").files_new == 1


def test_status_says_what_became_of_objects(bucket, tmp_path, capsys):
    import json

    one, two, three = streams(3)
    for name, data in (("a", one), ("b", half(two)), ("c", three)):
        bucket.put(f"in/{name}.jsonl", data)
    ingest(tmp_path / "lake", [bucket.url("in")])
    bucket.put("in/b.jsonl", two)
    bucket.client.delete_object(Bucket=bucket.name, Key="in/c.jsonl")
    bucket.put("in/d.jsonl", three)
    capsys.readouterr()
    arguments = ["--lake", str(tmp_path / "lake"), "status", bucket.url("in"), "--each", "--format", "json"]
    assert run(arguments) == 0
    states = {row["path"][-7:]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states == {"a.jsonl": "unchanged", "b.jsonl": "grown", "c.jsonl": "gone", "d.jsonl": "new"}


def test_a_pending_tail_waits_in_an_object_too(bucket, tmp_path):
    (data,) = streams(1)
    lines = data.splitlines(keepends=True)
    bucket.put("in/a.jsonl", b"".join(lines[:3]) + lines[3][:20])
    lake = open_lake(tmp_path / "lake", create=True)
    assert lake.ingest(bucket.url("in")).pending_tails == 1
    bucket.put("in/a.jsonl", data)
    report = lake.ingest(bucket.url("in"))
    assert (report.files_grown, report.pending_tails) == (1, 0)
    assert [name for name, found_rows in lake.check().items() if found_rows.fetchall()] == []
