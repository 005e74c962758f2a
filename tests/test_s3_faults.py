"""What an object store may do to us: fail, be slow, refuse; each ends well or in a sentence, never in half a lake."""

from __future__ import annotations

import pytest
from conftest import CORPUS
from objectstore import Fault, forget_connections

from analytics import objects, open_lake
from analytics.cli import run
from analytics.errors import LakeError, StoreError
from analytics.ingest import ingest

STREAMS = sorted((CORPUS / "metaharness").rglob("*.jsonl"))


@pytest.fixture
def filled(bucket):
    """A lake with one stream: a copy of the first that was made, so its source is that of another bucket."""
    path = bucket.put("in/a.jsonl", STREAMS[0].read_bytes())
    if not _filled:
        open_lake(bucket.url("lake"), create=True).ingest(path)
        _filled.extend((key, bucket.get(key)) for key in bucket.listing("lake"))
    for key, data in _filled:
        bucket.put(key, data)
    return open_lake(bucket.url("lake"))


_filled: list[tuple[str, bytes]] = []


def events(lake):
    return lake.sql("SELECT count(*) FROM events").fetchall()[0][0]


def test_requests_that_fail_are_tried_again(bucket, filled):
    before = events(filled)
    bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(
        Fault(r"GET .*in/b\.jsonl", times=1),
        Fault(r"PUT .*record=event", times=1),
        Fault(r"PUT .*_delta_log/0+2\.json", times=1),
        Fault(r"GET .*_delta_log/0+1\.json", status="500 Internal Server Error", code="InternalError", times=1),
    )
    report = filled.ingest(bucket.url("in"))
    assert (report.files_new, report.problems, filled.version) == (1, [], 2)
    assert events(filled) == before + report.events


def test_a_commit_that_is_done_though_the_store_said_it_failed_is_done_once(bucket, filled):
    before = events(filled)
    bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(Fault(r"PUT .*_delta_log/0+2\.json", times=1, is_done=True))
    report = filled.ingest(bucket.url("in"))
    assert (report.files_new, filled.version) == (1, 2)
    assert events(filled) == before + report.events
    assert [one["version"] for one in filled.history()] == [2, 1, 0]


def test_a_commit_that_is_refused_changes_nothing(bucket, filled):
    before = events(filled)
    bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(Fault(r"PUT .*_delta_log", status="403 Forbidden", code="AccessDenied"))
    with pytest.raises(StoreError, match=r"Could not commit to s3://\S+/lake: access is denied .*Check the credential"):
        filled.ingest(bucket.url("in"))
    bucket.store.fail()
    lake = open_lake(bucket.url("lake"))
    assert (lake.version, events(lake)) == (1, before)
    assert lake.ingest(bucket.url("in")).files_new == 1


def test_data_that_cannot_be_written_is_a_sentence(bucket, filled):
    bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(Fault(r"PUT .*record=event", status="403 Forbidden", code="AccessDenied"))
    with pytest.raises(StoreError, match=r"Could not write to s3://\S+parquet: access is denied \(made to fail\)"):
        filled.ingest(bucket.url("in"))
    bucket.store.fail()
    assert open_lake(bucket.url("lake")).version == 1


def test_a_slow_store_is_waited_for(bucket, filled):
    bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(
        Fault(r"GET .*in/b\.jsonl", status="200", delay=1.5, times=1),
        Fault(r"PUT .*_delta_log", status="200", delay=1.5, times=1),
    )
    assert filled.ingest(bucket.url("in")).files_new == 1


def test_a_source_that_cannot_be_read_is_named_and_read_next_time(bucket, filled):
    path = bucket.put("in/b.jsonl", STREAMS[1].read_bytes())
    bucket.store.fail(Fault(r"GET .*in/b\.jsonl", status="403 Forbidden", code="AccessDenied"))
    report = filled.ingest(bucket.url("in"))
    assert [problem for problem, _ in report.problems] == [path]
    assert "access is denied (made to fail)" in report.problems[0][1]
    bucket.store.fail()
    assert filled.ingest(bucket.url("in")).files_new == 1


def test_an_object_that_is_replaced_while_it_is_read_is_not_read_half(bucket):
    from analytics.reading import SourceDefect, open_source

    path = bucket.put("in/a.jsonl", b"a" * (objects.SOURCE_BLOCK + 100))
    opened = open_source(path)
    view = memoryview(bytearray(1000))
    assert opened.stream.readinto(view) == 1000
    bucket.put("in/a.jsonl", b"b" * (objects.SOURCE_BLOCK + 100))
    rest = memoryview(bytearray(2 * objects.SOURCE_BLOCK))
    with pytest.raises(SourceDefect, match="it was replaced while it was read"):
        opened.stream.readinto(rest)


def test_a_store_that_replaces_what_it_was_told_to_keep_holds_no_lake(bucket, monkeypatch):
    monkeypatch.setattr(objects, "write_new", lambda path, text: objects.write_text(path, text) is None)
    with pytest.raises(LakeError, match=r"told not to \(If-None-Match\)"):
        open_lake(bucket.url("lake"), create=True)


def say(capsys, *arguments):
    """Exit code and stderr of a command, in an environment of its own."""
    forget_connections()
    capsys.readouterr()
    try:
        return run([str(one) for one in arguments]), capsys.readouterr().err
    finally:
        forget_connections()


def test_no_credentials(bucket, capsys, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, told = say(capsys, "--lake", bucket.url("lake"), "report")
    assert code == 1
    assert told.startswith(f"Error: Could not reach the lake at {bucket.url('lake')}")
    assert "no credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in told
    code, told = say(capsys, "--lake", tmp_path / "lake", "ingest", bucket.url("in"))
    assert code == 1
    assert f"could not read {bucket.url('in')}: no credentials were found" in told


def test_no_bucket(bucket, capsys, tmp_path):
    code, told = say(capsys, "--lake", "s3://no-such-bucket-here/lake", "ingest", STREAMS[0])
    assert code == 1
    assert "s3://no-such-bucket-here/lake: there is no such bucket. Check the name, AWS_REGION and" in told
    code, told = say(capsys, "--lake", tmp_path / "lake", "ingest", "s3://no-such-bucket-here/in")
    assert code == 1
    assert "could not read s3://no-such-bucket-here/in: there is no such bucket" in told


def test_access_denied(bucket, capsys):
    bucket.store.fail(Fault("lake", status="403 Forbidden", code="AccessDenied"))
    code, told = say(capsys, "--lake", bucket.url("lake"), "report")
    assert code == 1
    assert "access is denied" in told
    assert "Check the credentials (AWS_ACCESS_KEY_ID" in told


def test_a_reader_without_the_right_to_write_reads(bucket, filled, capsys):
    bucket.put("lake/open.sql", b"-- of an older version\n")
    bucket.store.fail(Fault(r"PUT", status="403 Forbidden", code="AccessDenied"))
    code, told = say(capsys, "--lake", bucket.url("lake"), "report")
    assert (code, told) == (0, "")


@pytest.mark.long
def test_no_store_at_all(bucket, capsys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    code, told = say(capsys, "--lake", bucket.url("lake"), "report")
    assert code == 1
    assert "the store does not answer" in told
    assert "Check AWS_ENDPOINT_URL and the network" in told


def test_a_missing_extra_is_named(bucket, capsys, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "upath", None)
    code, told = say(capsys, "--lake", bucket.url("lake"), "report")
    assert code == 2
    assert "pip install 'runlake[s3]'" in told


def test_a_query_that_meets_a_failing_store_says_so(bucket, filled, capsys):
    bucket.store.fail(Fault(r"GET .*record=event.*wire=metaharness", status="403 Forbidden", code="AccessDenied"))
    code, told = say(capsys, "--lake", bucket.url("lake"), "sql", "SELECT count(payload) FROM events")
    assert code == 1
    assert "access is denied (made to fail)" in told


def test_a_local_lake_needs_nothing_of_this(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from analytics.ingest import ingest\n"
        "from analytics.api import open_lake\n"
        f"ingest({str(tmp_path / 'lake')!r}, [{str(STREAMS[0])!r}], jobs=1)\n"
        f"open_lake({str(tmp_path / 'lake')!r}).report('overview').fetchall()\n"
        "remote = {'fsspec', 's3fs', 'upath', 'botocore', 'analytics.objects'}\n"
        "print(sorted(remote & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert ingest(tmp_path / "lake", [STREAMS[0]]).files_unchanged == 1
