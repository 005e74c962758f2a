"""What the ledger decides for each file, with a reader as small as can be: an event per whole line."""

import gzip
import os
import random
import time
from datetime import UTC, datetime

import polars as pl
import pyarrow as pa
import pytest
import xxhash

from analytics import sqlfiles
from analytics.discover import discover
from analytics.lake import Store
from analytics.lakefiles import data_path, describe, new_ingest_id, parquet_writer
from analytics.ledger import NOTHING_HERE, Ledger, source_id, source_table
from analytics.planning import plan
from analytics.schema import arrow_schema

HOST = "some-host"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Lab:
    """A folder of sources, a lake, and an ingest that believes the plan."""

    def __init__(self, folder):
        self.sources = folder / "in"
        self.sources.mkdir()
        self.store = Store.open(folder / "lake", create=True)

    def write(self, name, content, at=None):
        path = self.sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if at is not None:
            os.utime(path, (at, at))

    def touch(self, name, at=1_000_000):
        os.utime(self.sources / name, (at, at))

    def plan(self, *given, **options):
        return plan(self.ledger(), discover(given or [self.sources]), ingest_id="now", **options)

    def ledger(self):
        return Ledger.load(self.store, host=HOST)

    def ingest(self, *given, **options):
        decided = self.plan(*given, **options)
        ingest_id = new_ingest_id()
        ledger, events, rows = self.ledger(), [], {}
        read = {}
        for task in decided.read:
            read[task.source_id] = self._read(task, events, options.get("wire"))
        for copy in decided.copies:
            original = read.get(copy.copy_of) or ledger.row(copy.copy_of)
            row = copy.row(host=HOST, wire=original["wire"], shape=original["shape"], digest=original["digest"])
            rows.setdefault(original["wire"], []).append(row)
        for row in read.values():
            rows.setdefault(row["wire"], []).append(row)
        for wire, more in ledger.restated(decided.changes, ingest_id=ingest_id, now=NOW).items():
            rows.setdefault(wire, []).extend(more)
        files = []
        for number, (wire, some) in enumerate(rows.items()):
            files.append(self.put("source", wire, ingest_id, number, source_table(some)))
        if events:
            table = pa.Table.from_pylist(events, schema=arrow_schema("event"))
            files.append(self.put("event", "platonic-core", ingest_id, 0, table))
        out = self.store.replace_sources(decided.replaced, ingest_id)
        self.store = self.store.commit([*files, *out.added], out.removed, ingest_id=ingest_id, note="ingest")
        return decided

    def put(self, record, wire, ingest_id, number, table):
        relative = data_path(record, wire, ingest_id, number)
        with parquet_writer(self.store.root / relative, record) as writer:
            writer.write_table(table)
        return describe(self.store.root, relative)

    def _read(self, task, events, wire):
        with open(task.found.path, "rb") as file:
            raw = file.read()
        codec = "gzip" if raw.startswith(b"\x1f\x8b") else None
        whole = gzip.decompress(raw) if codec else raw
        prior = task.prior if task.kind == "grown" else None
        start = prior["bytes_read"] if prior else 0
        end = whole.rfind(b"\n") + 1
        lines = whole[start:end].split(b"\n")[:-1]
        before = prior["lines"] - bool(prior["pending_bytes"]) if prior else 0
        known = not whole.startswith(b"no wire")
        if known:
            for at, line in enumerate(lines):
                place = {"source_id": task.source_id, "line": before + at + 1, "part": 0}
                events.append(place | {"payload": line.decode()})
        count = before + len(lines)
        is_document = whole.startswith(b"[")
        return {
            "wire": ("harness-lab" if is_document else wire or "platonic-core") if known else "unknown",
            "shape": "export" if is_document else "record", "status": "read" if known else "skipped",
            "source_id": task.source_id, "revision": task.revision, "ingest_id": "x", "host": HOST,
            "path": task.found.display, "size_bytes": len(raw), "mtime_ns": task.found.mtime_ns,
            "inode": task.found.inode, "compression": codec, "bytes_read": end,
            "digest": xxhash.xxh3_128_hexdigest(whole[:end]), "lines": count + (end < len(whole)),
            "event_lines": count, "events": count, "refusals": 0, "refused_lines": 0, "blank_lines": 0,
            "pending_bytes": len(whole) - end, "redactions": 0, "resume_state": "{}",
            "runs": [{"run_id": "r", "first_line": 1, "last_line": count, "first_ts": 1_700_000_000_000_000}],
            "first_seen": prior["first_seen"] if prior else NOW, "ends_without_newline": False,
        } if known else {
            "wire": "unknown", "status": "skipped", "status_reason": "no known wire", "source_id": task.source_id,
            "revision": task.revision, "host": HOST, "path": task.found.display, "size_bytes": len(raw),
            "mtime_ns": task.found.mtime_ns, "inode": task.found.inode,
        }  # fmt: skip

    def lines(self):
        """Per path the payloads in the lake, in order; what the lake says every file holds."""
        paths = {row["source_id"]: row for row in self.ledger().rows()}
        events = pl.concat([pl.read_parquet(p, hive_partitioning=False) for p in self.store.files("event")])
        held = {}
        ordered = events.sort("source_id", "line").select("source_id", "line", "payload")
        for source, line, payload in ordered.iter_rows():
            held.setdefault(os.path.basename(paths[source]["path"]), []).append((line, payload))
        for lines in held.values():
            assert [number for number, _ in lines] == list(range(1, len(lines) + 1)), "no line twice, none left out"
        return {name: [payload for _, payload in lines] for name, lines in held.items()}

    def states(self):
        return {os.path.basename(row["path"]): row["status"] for row in self.ledger().rows()}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    place = tmp_path / "queries"
    place.mkdir()
    (place / "all.sql").write_text("")
    monkeypatch.setattr(sqlfiles, "folder", lambda: place)
    return Lab(tmp_path)


def kinds(decided):
    return {os.path.basename(task.found.path): task.kind for task in decided.read}


def copies(decided):
    return [os.path.basename(copy.found.path) for copy in decided.copies]


def test_the_second_time_nothing_is_read(lab, monkeypatch):
    lab.write("a", b"1\n2\n")
    lab.write("b.jsonl", b"1\n2\n3\n")
    assert kinds(lab.ingest(lab.sources, lab.sources / "a")) == {"a": "new", "b.jsonl": "new"}
    monkeypatch.setattr("analytics.contents.prefix_digest", None)
    monkeypatch.setattr("analytics.contents.originals_of", None)
    again = lab.plan(lab.sources, lab.sources / "a")
    assert again.is_empty
    assert len(again.unchanged) == 2


def test_a_grown_file_is_read_on_from_where_it_ended(lab):
    lab.write("a.jsonl", b"1\n2\nhal")
    lab.ingest()
    lab.write("a.jsonl", b"1\n2\nhalf\n4")
    decided = lab.plan()
    (task,) = decided.read
    assert (task.kind, task.prior["bytes_read"], task.revision, task.replaces) == ("grown", 4, 2, ())
    assert task.prior["wire"] == "platonic-core"
    assert task.prior["runs"][0]["first_ts"] == 1_700_000_000_000_000
    lab.ingest()
    lab.write("a.jsonl", b"1\n2\nhalf\n4\n")
    lab.ingest()
    assert lab.lines() == {"a.jsonl": ["1", "2", "half", "4"]}


@pytest.mark.parametrize("content", [b"x\n2\n3\n", b"x\n", b"x\n2\n", b"1\n", b"", b"no wire\n"])
def test_a_rewritten_or_shrunk_file_replaces_its_rows(lab, content):
    lab.write("a.jsonl", b"1\n2\n", at=1)
    lab.write("keep.jsonl", b"7\n8\n9\n")
    lab.ingest()
    lab.write("a.jsonl", content, at=2)
    decided = lab.ingest()
    assert kinds(decided) == {"a.jsonl": "rewritten"}
    assert decided.replaced == {source_id(HOST, str(lab.sources / "a.jsonl"))}
    wanted = [] if content.startswith(b"no") else content.decode().split()
    assert lab.lines().get("a.jsonl", []) == wanted
    assert lab.lines()["keep.jsonl"] == ["7", "8", "9"]
    assert lab.plan().is_empty


def test_a_touched_file_gets_a_new_time_and_keeps_its_rows(lab):
    lab.write("a.jsonl", b"1\n2\n")
    lab.write("b.gz", gzip.compress(b"1\n2\n3\n", mtime=0))
    given = [lab.sources, lab.sources / "b.gz"]
    lab.ingest(*given)
    before = lab.ledger().whole_rows(lab.ledger().known)
    lab.touch("a.jsonl")
    lab.touch("b.gz")
    decided = lab.ingest(*given)
    assert (decided.read, len(decided.touched)) == ([], 2)
    after = lab.ledger().whole_rows(lab.ledger().known)
    for source, row in after.items():
        changed = {name for name, value in row.items() if value != before[source][name]}
        assert changed == {"revision", "mtime_ns", "ingest_id", "last_seen"}
    assert lab.plan(*given).is_empty
    assert lab.lines()["b.gz"] == ["1", "2", "3"]


def test_a_touched_file_with_a_pending_tail_is_read_on(lab):
    """The tail is kept redacted, so nothing can be compared with it; reading it again costs its bytes."""
    lab.write("a.jsonl", b"1\n2", at=1)
    lab.ingest()
    lab.touch("a.jsonl", 2)
    assert kinds(lab.ingest()) == {"a.jsonl": "grown"}
    assert lab.lines() == {"a.jsonl": ["1"]}


@pytest.mark.parametrize(("name", "first", "second"), [
    ("a.jsonl.gz", gzip.compress(b"1\n", mtime=0), gzip.compress(b"1\n2\n", mtime=0)),
    ("a.json", b"[\n", b"[\n]\n"),
])  # fmt: skip
def test_compressed_files_and_documents_are_never_read_on(lab, name, first, second):
    lab.write(name, first, at=1)
    lab.ingest()
    lab.write(name, second, at=2)
    assert kinds(lab.ingest()) == {name: "rewritten"}
    assert lab.plan().is_empty


def test_a_last_line_that_was_taken_without_its_newline_is_not_read_on(lab):
    lab.write("a.jsonl", b"1\n", at=1)
    lab.ingest()
    source = source_id(HOST, str(lab.sources / "a.jsonl"))
    rows = lab.ledger().restated({source: {"ends_without_newline": True}}, ingest_id="x", now=NOW)
    file = lab.put("source", "platonic-core", new_ingest_id(), 0, source_table(rows["platonic-core"]))
    lab.store = lab.store.commit([file], [], ingest_id="by hand", note="")
    lab.write("a.jsonl", b"1\n2\n", at=2)
    assert kinds(lab.plan()) == {"a.jsonl": "rewritten"}


def test_the_same_content_under_other_names_is_read_once(lab):
    lab.write("a.jsonl", b"1\n2\n")
    lab.write("b.jsonl", b"1\n2\n")
    lab.write("c.jsonl", b"1\n3\n")
    first = lab.ingest()
    assert (kinds(first), copies(first)) == ({"a.jsonl": "new", "c.jsonl": "new"}, ["b.jsonl"])
    lab.write("d/d.jsonl", b"1\n3\n")
    second = lab.ingest()
    assert (kinds(second), copies(second)) == ({}, ["d.jsonl"])
    assert lab.lines() == {"a.jsonl": ["1", "2"], "c.jsonl": ["1", "3"]}
    assert lab.states() == {"a.jsonl": "read", "b.jsonl": "copy", "c.jsonl": "read", "d.jsonl": "copy"}
    assert lab.plan().is_empty
    lab.touch("b.jsonl")
    assert (kinds(lab.ingest()), lab.states()["b.jsonl"]) == ({}, "copy")
    assert lab.plan().is_empty


def test_large_files_of_one_size_that_differ_in_the_middle_are_no_copies(lab):
    for name, middle in (("a.jsonl", b"1"), ("b.jsonl", b"2"), ("c.jsonl", b"1")):
        lab.write(name, b"x\n" * 5000 + middle + b"\n" + b"y\n" * 5000)
    decided = lab.plan()
    assert (kinds(decided), copies(decided)) == ({"a.jsonl": "new", "b.jsonl": "new"}, ["c.jsonl"])


def test_empty_files_are_not_copies_of_each_other(lab):
    lab.write("a.jsonl", b"")
    lab.write("b.jsonl", b"")
    assert kinds(lab.plan()) == {"a.jsonl": "new", "b.jsonl": "new"}


def test_a_copy_is_read_when_its_original_is_rewritten(lab):
    """Or the content would be nowhere: its rows belong to the original, and go."""
    for name in "abc":
        lab.write(f"{name}.jsonl", b"1\n2\n", at=1)
    lab.ingest()
    lab.write("a.jsonl", b"other\n")
    decided = lab.ingest(lab.sources / "a.jsonl")
    assert (kinds(decided), copies(decided)) == ({"a.jsonl": "rewritten", "b.jsonl": "new"}, ["c.jsonl"])
    assert lab.lines() == {"a.jsonl": ["other"], "b.jsonl": ["1", "2"]}
    assert lab.plan().is_empty


def test_a_copy_that_is_touched_while_its_original_is_rewritten_is_read(lab):
    lab.write("a.jsonl", b"1\n2\n", at=1)
    lab.write("b.jsonl", b"1\n2\n", at=1)
    lab.ingest()
    lab.write("a.jsonl", b"other\n")
    lab.touch("b.jsonl")
    lab.ingest()
    assert lab.lines() == {"a.jsonl": ["other"], "b.jsonl": ["1", "2"]}
    assert lab.plan().is_empty


def test_a_copy_that_grows_away_from_its_original_is_a_source_of_its_own(lab):
    lab.write("a.jsonl", b"1\n", at=1)
    lab.write("b.jsonl", b"1\n", at=1)
    lab.ingest()
    lab.write("b.jsonl", b"1\n2\n", at=2)
    assert kinds(lab.ingest()) == {"b.jsonl": "new"}
    assert lab.lines() == {"a.jsonl": ["1"], "b.jsonl": ["1", "2"]}


def test_rotated_logs_keep_every_line_once(lab):
    lab.write("x.log", b"1\n")
    lab.ingest()
    for day in range(2, 5):
        for old in range(day, 0, -1):
            place = lab.sources / f"x.log.{old}"
            if place.exists():
                place.rename(lab.sources / f"x.log.{old + 1}")
        (lab.sources / "x.log").rename(lab.sources / "x.log.1")
        lab.write("x.log", f"{day}\n".encode())
        lab.ingest(lab.sources / "*")
    held = [line for lines in lab.lines().values() for line in lines]
    assert sorted(held) == ["1", "2", "3", "4"]


def test_a_renamed_file_is_a_copy_and_keeps_its_rows_under_the_old_name(lab):
    lab.write("a.jsonl", b"1\n2\n")
    lab.ingest()
    (lab.sources / "a.jsonl").rename(lab.sources / "b.jsonl")
    decided = lab.ingest()
    assert (kinds(decided), copies(decided), len(decided.gone)) == ({}, ["b.jsonl"], 1)
    assert lab.states() == {"a.jsonl": "gone", "b.jsonl": "copy"}
    assert lab.lines() == {"a.jsonl": ["1", "2"]}
    assert lab.plan().is_empty


@pytest.mark.parametrize("seen_between", [False, True])
def test_a_file_that_was_renamed_and_grew_takes_its_lines_along(lab, seen_between):
    lab.write("a.jsonl", b"1\n2\n")
    lab.ingest()
    (lab.sources / "a.jsonl").rename(lab.sources / "b.jsonl")
    if seen_between:
        lab.ingest()
    with open(lab.sources / "b.jsonl", "ab") as file:
        file.write(b"3\n")
    decided = lab.ingest()
    assert kinds(decided) == {"b.jsonl": "new"}
    assert lab.lines() == {"b.jsonl": ["1", "2", "3"]}
    assert lab.states() == {"a.jsonl": "gone", "b.jsonl": "read"}
    row = lab.ledger().row(source_id(HOST, str(lab.sources / "a.jsonl")))
    assert {name: row[name] for name in NOTHING_HERE if name in row} == {
        name: value for name, value in NOTHING_HERE.items() if name in row
    }
    with open(lab.sources / "b.jsonl", "ab") as file:
        file.write(b"4\n")
    lab.ingest()
    assert lab.lines() == {"b.jsonl": ["1", "2", "3", "4"]}


def test_a_file_that_vanished_is_gone_and_kept_until_it_is_back(lab):
    lab.write("a.jsonl", b"1\n")
    lab.write("sub/b.jsonl", b"2\n2\n")
    lab.ingest()
    content = (lab.sources / "a.jsonl").stat()
    (lab.sources / "a.jsonl").rename(lab.sources.parent / "away")
    assert lab.plan(lab.sources / "sub").gone == [], "nobody looked there"
    assert lab.ingest().gone == [str(lab.sources / "a.jsonl")]
    assert lab.lines()["a.jsonl"] == ["1"]
    assert lab.plan().is_empty, "gone is said once"
    (lab.sources.parent / "away").rename(lab.sources / "a.jsonl")
    assert (lab.sources / "a.jsonl").stat().st_mtime_ns == content.st_mtime_ns
    back = lab.ingest()
    assert (back.read, len(back.touched)) == ([], 1)
    assert lab.states()["a.jsonl"] == "read"
    assert lab.plan().is_empty


def test_a_vanished_file_that_was_named_itself_is_gone(lab):
    lab.write("a.jsonl", b"1\n")
    lab.ingest()
    (lab.sources / "a.jsonl").unlink()
    assert lab.plan(lab.sources / "a.jsonl").gone == [str(lab.sources / "a.jsonl")]


def test_a_file_of_another_suffix_in_a_listed_folder_is_not_gone(lab):
    lab.write("a.dat", b"1\n")
    lab.ingest(lab.sources / "a.dat")
    assert lab.plan().is_empty


@pytest.mark.parametrize("name", [b"\xff\xfe.jsonl", b"back\\xff.jsonl", b"new\nline.jsonl", "é'\".jsonl".encode()])
def test_odd_names_are_known_again_and_missed_when_gone(lab, name):
    path = os.path.join(os.fsencode(lab.sources), name)
    with open(path, "wb") as file:
        file.write(b"1\n")
    lab.ingest()
    assert lab.plan().is_empty
    os.unlink(path)
    assert len(lab.plan().gone) == 1


def test_what_was_skipped_is_read_again_only_when_it_changed_or_a_wire_is_named(lab):
    lab.write("a.jsonl", b"no wire\n", at=1)
    lab.write("b.jsonl", b"1\n")
    lab.ingest()
    assert lab.plan().is_empty
    assert kinds(lab.plan(wire="platonic-core")) == {"a.jsonl": "new"}
    assert kinds(lab.plan(wire="metaharness")) == {"a.jsonl": "new", "b.jsonl": "rewritten"}
    lab.write("a.jsonl", b"1\n2\n", at=2)
    assert kinds(lab.ingest()) == {"a.jsonl": "new"}
    assert lab.lines() == {"a.jsonl": ["1", "2"], "b.jsonl": ["1"]}


def test_all_can_be_read_again(lab):
    lab.write("a.jsonl", b"1\n")
    lab.write("b.jsonl", b"1\n")
    lab.write("c.jsonl", b"2\n3\n")
    lab.ingest()
    assert kinds(lab.ingest(again=True)) == {"a.jsonl": "rewritten", "c.jsonl": "rewritten"}
    assert lab.lines() == {"a.jsonl": ["1"], "c.jsonl": ["2", "3"]}


def test_a_stream_is_a_source_of_its_own_each_time_and_its_content_is_known(lab):
    one, two = (plan(lab.ledger(), discover(["-"]), ingest_id=name).read[0] for name in "xy")
    assert one.source_id != two.source_id
    lab.write("a.jsonl", b"1\n2\n")
    lab.ingest()
    ledger = lab.ledger()
    assert ledger.with_content(xxhash.xxh3_128_hexdigest(b"1\n2\n"), 4) == source_id(HOST, str(lab.sources / "a.jsonl"))
    assert ledger.with_content(xxhash.xxh3_128_hexdigest(b""), 0) is None


def test_another_host_has_sources_of_its_own(lab):
    lab.write("a.jsonl", b"1\n")
    lab.ingest()
    decided = plan(Ledger.load(lab.store, host="other"), discover([lab.sources]), ingest_id="now")
    assert (kinds(decided), copies(decided), decided.gone) == ({}, ["a.jsonl"], [])


def test_decisions_are_the_same_after_compaction(lab):
    for number in range(5):
        lab.write(f"{number}.jsonl", b"1\n" * (number + 1), at=1)
        lab.ingest()
    lab.touch("0.jsonl")
    lab.ingest()
    lab.store, saved = lab.store.compact()
    assert saved.files_before > saved.files_after
    assert lab.plan().is_empty
    lab.write("3.jsonl", b"1\n" * 6, at=2)
    assert kinds(lab.ingest()) == {"3.jsonl": "grown"}
    assert {name: len(lines) for name, lines in lab.lines().items()} == {
        "0.jsonl": 1, "1.jsonl": 2, "2.jsonl": 3, "3.jsonl": 6, "4.jsonl": 5,
    }  # fmt: skip


@pytest.mark.slow
def test_a_hundred_thousand_known_sources_cost_seconds(lab):
    count = 100_000
    folder = lab.sources
    rows = []
    for number in range(count):
        path = str(folder / f"{number}.jsonl")
        with open(path, "wb") as file:
            file.write(b"1\n")
        os.utime(path, ns=(10**18, 10**18))
        rows.append({
            "source_id": source_id(HOST, path), "revision": 1, "host": HOST, "path": path, "status": "read",
            "size_bytes": 2, "mtime_ns": 10**18, "inode": os.stat(path).st_ino, "bytes_read": 2,
            "digest": "0" * 32, "lines": 1,
            "pending_bytes": 0, "events": 1, "resume_state": "{}", "runs": [{"run_id": str(number)}],
        })  # fmt: skip
    file = lab.put("source", "platonic-core", new_ingest_id(), 0, source_table(rows))
    lab.store = lab.store.commit([file], [], ingest_id="many", note="")
    found = discover([folder])
    began = time.perf_counter()
    decided = plan(lab.ledger(), found, ingest_id="now")
    took = time.perf_counter() - began
    assert decided.is_empty
    assert len(decided.unchanged) == count
    assert took < 5, took


def check_held(lab):
    """Each file on disk is held whole: by its own rows, or by those of the source it is a copy of."""
    held = lab.lines()
    rows = {row["path"]: row for row in lab.ledger().rows()}
    names = {row["source_id"]: os.path.basename(path) for path, row in rows.items()}
    for path in lab.sources.iterdir():
        content = path.read_bytes().decode()
        lines = content[: content.rfind("\n") + 1].split()
        row = rows[str(path)]
        if row["status"] == "copy":
            assert held.get(names[row["copy_of"]], [])[: len(lines)] == lines, path.name
            assert path.name not in held
        else:
            assert held.get(path.name, []) == lines, path.name
    assert lab.plan().is_empty


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_the_files_each_is_held_whole(lab, seed):
    chance = random.Random(seed)
    names = [f"{letter}.jsonl" for letter in "abcde"]

    def step():
        name, other = chance.choice(names), chance.choice(names)
        path, target = lab.sources / name, lab.sources / other
        deed = chance.choice(["append", "append", "rewrite", "truncate", "rename", "copy", "delete", "touch", "tail"])
        if deed in ("append", "tail"):
            with open(path, "ab") as file:
                file.write(b"%d" % chance.randrange(40) + (b"\n" if deed == "append" else b""))
        elif deed == "rewrite":
            path.write_text("".join(f"{chance.randrange(4)}\n" for _ in range(chance.randrange(5))))
        elif not path.exists():
            return
        elif deed == "truncate":
            os.truncate(path, chance.randrange(path.stat().st_size + 1))
        elif deed == "rename":
            path.rename(target)
        elif deed == "copy" and path != target:
            target.write_bytes(path.read_bytes())
        elif deed == "delete":
            path.unlink()
        elif deed == "touch":
            os.utime(path, (chance.randrange(9), 0))

    for _ in range(12):
        for _ in range(chance.randrange(1, 5)):
            step()
        lab.ingest()
        check_held(lab)
        if chance.random() < 0.1:
            lab.store, _ = lab.store.compact()
            check_held(lab)
