"""Lines in are lines kept, bytes in are bytes kept: `check` proves it for a lake, and says where one was damaged."""

from __future__ import annotations

import gzip
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CORPUS
from helpers import BLOCKED, CANCELED, CLAUDE, CODEX, GENERIC, Lab

from analytics import open_lake
from analytics.cli import run
from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id, parquet_writer
from analytics.schema import arrow_schema

BOM = b"\xef\xbb\xbf"
SECRET = b"sk-ant-" + b"api03-" + b"Ab3dE5fG7h" * 6
ROWS = [
    json.dumps({
        "type": "user", "uuid": f"u{n}", "parentUuid": None, "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": "user", "content": "Go on."},
    }).encode()
    for n in range(9)
]  # fmt: skip


def lines_of_a() -> list[bytes]:
    """Ten lines: the third blank, the fifth no JSON, the eighth with a secret."""
    lines = CLAUDE.read_bytes().splitlines()[:8]
    lines.insert(2, b" \t")
    lines.insert(4, b"no JSON at all")
    lines[7] = lines[7].replace(b'":"', b'":"' + SECRET + b" ", 1)
    return lines


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A lake of every way in which bytes are kept."""
    lab = Lab(tmp_path_factory.mktemp("sound"))
    lab.write("a.jsonl", BOM + b"\n".join(lines_of_a()) + b'\n{"format":"met')  # its tail is pending
    lab.write("glued.jsonl", b"\n".join([ROWS[0], ROWS[1], ROWS[2] + ROWS[3], ROWS[4][:20] + ROWS[5], ROWS[6], b""]))
    lab.write("document.json", next((CORPUS / "harness-lab").glob("export-*.json")).read_bytes())
    lab.write("stdout.txt", GENERIC.read_bytes() + b"a\xff\xfe line\n\r\nthe last")
    lab.write("whole.jsonl", "UTF-16".encode("utf-16") * 40)
    lab.write("c.jsonl.gz", gzip.compress(CODEX.read_bytes().replace(b"\n", b"\r\n")))
    lab.write("cut.jsonl.gz", gzip.compress(CANCELED.read_bytes())[:-9])
    lab.write("copy.jsonl", BLOCKED.read_bytes())
    lab.write("original.jsonl", BLOCKED.read_bytes())
    lab.ingest()
    return lab


def test_a_sound_lake_of_every_way_passes(sound):
    assert sound.failed_checks() == {}
    said = dict(sound.sql("SELECT status, count(*) FROM sources GROUP BY status"))
    assert said["read"] >= 6
    assert said["copy"] == 1
    assert said["refused"] == 1
    assert sound.sql("SELECT count(*) FROM stored_refusals WHERE line IS NULL") == [(2,)]


def where(name, line=None, part=None):
    """True for the rows of a source (a line, a part of it)."""

    def is_meant(row, paths):
        is_here = paths.get(row["source_id"], "").endswith(name)
        return is_here and line in (None, row.get("line")) and part in (None, row.get("part"))

    return is_meant


def changed(**columns):
    """Each meant row with some columns changed: a value, or a function of the old one."""

    def change(row):
        return [row | {name: value(row[name]) if callable(value) else value for name, value in columns.items()}]

    return change


def gone(_):
    return []


def twice(row):
    return [row, row]


def more(value):
    return value + 1


def blank_longer(blanks):
    return [blank | {"text": blank["text"] + b" "} for blank in blanks]


# what is done to the lake; source, line and next_line that must be named: between them lies what no longer fits
DAMAGE = {
    "an event is gone": ("event", where("a.jsonl", 7), gone, ("a.jsonl", 7, None)),
    "an event is there twice": ("event", where("a.jsonl", 7), twice, ("a.jsonl", 7, None)),
    "an event's offset": ("event", where("a.jsonl", 7), changed(byte_offset=more), ("a.jsonl", 7, None)),
    "an event's line": ("event", where("a.jsonl", 10), changed(line=more), ("a.jsonl", 10, None)),
    "a payload is shorter": ("event", where("a.jsonl", 6, 0), changed(payload=lambda t: t[:-1]), ("a.jsonl", 6, 7)),
    "a payload is gone": ("event", where("a.jsonl", 6, 0), changed(payload=None), ("a.jsonl", 6, None)),
    "the offset behind a secret": ("event", where("a.jsonl", 9), changed(byte_offset=more), ("a.jsonl", 9, None)),
    "a refusal is gone": ("refusal", where("a.jsonl", 5), gone, ("a.jsonl", 5, None)),
    "a refusal's bytes": ("refusal", where("a.jsonl", 5), changed(bytes=more), ("a.jsonl", 5, 6)),
    "a refusal's offset": ("refusal", where("a.jsonl", 5), changed(byte_offset=more), ("a.jsonl", 5, None)),
    "a blank is longer": ("source", where("a.jsonl"), changed(blanks=blank_longer), ("a.jsonl", 2, 4)),
    "a blank is gone": ("source", where("a.jsonl"), changed(blanks=[]), ("a.jsonl", 3, 4)),
    "the BOM": ("source", where("a.jsonl"), changed(has_bom=False), ("a.jsonl", 1, 1)),
    "bytes_read": ("source", where("a.jsonl"), changed(bytes_read=more), ("a.jsonl", 10, None)),
    "one line more": ("source", where("a.jsonl"), changed(lines=more), ("a.jsonl", 11, None)),
    "one line less": ("source", where("a.jsonl"), changed(lines=lambda n: n - 1), ("a.jsonl", 10, None)),
    "no tail": ("source", where("a.jsonl"), changed(pending_bytes=0), ("a.jsonl", 11, None)),
    "a glued record": ("event", where("glued.jsonl", 3, 1), gone, ("glued.jsonl", 3, 4)),
    "a stub before a record": ("refusal", where("glued.jsonl", 4), gone, ("glued.jsonl", 3, 4)),
    "bytes of no text": ("event", where("stdout.txt"), changed(raw=lambda b: b and b[1:]), ("stdout.txt", -3, -1)),
    "its last newline": ("source", where("stdout.txt"), changed(ends_without_newline=False), ("stdout.txt", -1, None)),
    "an event in a document": ("event", where("document.json", 5), gone, ("document.json", 5, 6)),
    "its offset": ("event", where("document.json", 5), changed(byte_offset=more), ("document.json", 5, 6)),
    "a skeleton": ("source", where("document.json"), changed(skeleton=lambda t: t + " "), ("document.json", -1, None)),
    "a file refused whole": ("refusal", where("whole.jsonl"), changed(bytes=more), ("whole.jsonl", None, None)),
    "its refusal": ("refusal", where("whole.jsonl"), gone, ("whole.jsonl", None, None)),
    "a decompressed line": ("event", where("c.jsonl.gz", 4), gone, ("c.jsonl.gz", 4, 5)),
}  # fmt: skip


def damaged(sound, folder, record, is_meant, change):
    """A copy of the lake with some rows of it written anew, as no runlake would."""
    shutil.copytree(sound.path, folder / "lake")
    store = Store.open(folder / "lake")
    ledger = [pq.ParquetFile(path).read(columns=["source_id", "path"]).to_pylist() for path in store.files("source")]
    paths = {row["source_id"]: row["path"] for rows in ledger for row in rows}
    ingest_id, added, removed, count = new_ingest_id(), [], [], 0
    for number, file in enumerate(file for file in store.all_files if file.record == record and file.rows):
        table = pq.ParquetFile(store.root / file.relative).read()
        rows = []
        for row in table.to_pylist():
            meant = is_meant(row, paths)
            count += meant
            rows += change(row) if meant else [row]
        relative = data_path(record, file.wire, ingest_id, number)
        with parquet_writer(store.root / relative, record) as writer:
            writer.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(record)))
        added.append(describe(store.root, relative))
        removed.append(file.relative)
    assert count, "no row was meant"
    store.commit(added, removed, ingest_id=ingest_id, note="damage")
    return folder / "lake"


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_where_it_is(sound, tmp_path, what):
    record, is_meant, change, (name, line, next_line) = DAMAGE[what]
    path = damaged(sound, tmp_path, record, is_meant, change)
    with open_lake(path) as lake:
        found = lake.sql("FROM check_bytes_of_sources").pl().to_dicts()
        [(last,)] = lake.sql(f"SELECT lines FROM sources WHERE path LIKE '%/{name}'").fetchall()
    assert found
    assert {row["path"].rsplit("/", 1)[1] for row in found} == {name}, "no other source is blamed"
    line = last + 1 + line if line is not None and line < 0 else line
    next_line = last + 1 + next_line if next_line is not None and next_line < 0 else next_line
    assert line in {row["line"] for row in found}, found
    assert next_line is None or next_line in {row["next_line"] for row in found}, found


def test_the_command_names_source_and_line_and_exits_1(sound, tmp_path, capfd):
    path = damaged(sound, tmp_path, "event", where("a.jsonl", 7), gone)
    assert run(["check", "--lake", str(path)]) == 1
    said = capfd.readouterr()
    assert (
        f"bytes_of_sources: source {sound.sources / 'a.jsonl'}, line 7, next_line 8, fault a line is missing"
        in said.err
    )
    assert "rows_of_sources" in said.err


def test_as_many_blank_lines_as_glued_ones_hide_nothing(tmp_path):
    """Once the line numbers of such a file looked as if each row stood on a line of its own."""
    lab = Lab(tmp_path)
    lab.write("s.jsonl", b"\n".join([ROWS[0], b"", ROWS[1] + ROWS[2], ROWS[3], b""]))
    lab.ingest()
    assert lab.failed_checks() == {}
    assert lab.sql("SELECT lines, event_lines, blank_lines FROM sources") == [(4, 3, 1)]


def test_records_of_two_runs_on_one_line_are_a_line_of_both(tmp_path):
    lab = Lab(tmp_path)
    other = ROWS[1].replace(b'"sessionId": "s"', b'"sessionId": "t"')
    lab.write("s.jsonl", ROWS[0] + other + b"\n" + ROWS[2] + b"\n")
    lab.ingest()
    assert lab.failed_checks() == {}


def test_a_document_in_a_cut_gz_is_refused_whole(tmp_path):
    """It was told as unreadable with each ingest, and never in the lake."""
    lab = Lab(tmp_path)
    document = next((CORPUS / "harness-lab").glob("export-*.json")).read_bytes()
    lab.write("d.json.gz", gzip.compress(document)[:-20])
    lab.ingest()
    assert lab.failed_checks() == {}
    assert lab.sql("SELECT reason, line FROM stored_refusals") == [("compressed_data_broken", None)]
    assert lab.sql("SELECT status FROM sources") == [("refused",)]


def test_a_document_that_is_too_large_is_counted_whole(tmp_path):
    lab = Lab(tmp_path)
    document = BOM + next((CORPUS / "harness-lab").glob("export-*.json")).read_bytes()
    lab.write("d.json", document)
    lab.ingest(max_document_bytes=2000)
    assert lab.sql("SELECT reason, bytes, octet_length(raw) FROM stored_refusals") == [
        ("document_too_large", len(document), len(document))
    ]
    assert lab.failed_checks() == {}
