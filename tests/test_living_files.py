"""Sources that change while they are read, are not what their names say, or may not be read: the answer to each.

What happens between two ingests is in `tests/test_ingest_files.py` and, as plans, in `tests/test_ledger.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from helpers import CLAUDE, CODEX, RECORDED, TWO_RUNS, Lab, Reader
from killing import Forge, unsound

from analytics import ingest, reading

STATES = "SELECT parse_filename(path), status, status_reason FROM sources ORDER BY path"


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


@pytest.fixture(scope="module")
def forge():
    with Forge() as made:
        yield made


def after_the_plan(monkeypatch, deed) -> None:
    """Something happens once, after an ingest has compared everything with the ledger and before it reads."""
    real = ingest.plan

    def plan(*arguments, **options):
        decided = real(*arguments, **options)
        monkeypatch.setattr(ingest, "plan", real)
        deed()
        return decided

    monkeypatch.setattr(ingest, "plan", plan)


def half_way(monkeypatch, path: Path, deed) -> None:
    """Something happens once, when the ingest has read the first 2,000 bytes of a file."""
    real = reading.Plain.readinto
    inode = path.stat().st_ino
    done = []

    def readinto(self, view):
        is_it = not done and os.fstat(self._file.fileno()).st_ino == inode
        got = real(self, view[:2000] if is_it else view)
        if is_it:
            done.append(True)
            deed()
        return got

    monkeypatch.setattr(reading.Plain, "readinto", readinto)


# -- while it is read

HEAD = b'{"format":"metaharness.event/1","seq":%d,"run":"live","event":"text",'
LINE = HEAD + b'"text":"word %d \xf0\x9f\x9a\x80","request_id":null}\n'
WRITER = f"""
import os, sys, time
line = {LINE!r}
with open(sys.argv[1], "ab", buffering=0) as file:
    number, rest = 0, b""
    print("on", flush=True)
    while not os.path.exists(sys.argv[2]):
        rest += b"".join(line % (n, n) for n in range(number + 1, number + 21))
        number += 20
        cut = len(rest) - number % 97  # anywhere, also inside a character
        file.write(rest[:cut])
        rest = rest[cut:]
        time.sleep(0.0005)
    file.write(rest)
print(number)
"""


def test_a_file_that_is_appended_to_at_full_speed_while_it_is_ingested(lab, tmp_path):
    """Each ingest sees the lines from the first to the last that was whole; in the end it is as if read once."""
    path = lab.write("live.jsonl", b"")
    stop = tmp_path / "stop"
    with subprocess.Popen([sys.executable, "-c", WRITER, path, stop], stdout=subprocess.PIPE, text=True) as writer:
        writer.stdout.readline()
        counts, pending = [], 0
        for _ in range(5):
            report = lab.ingest()
            assert report.problems == []
            pending += report.pending_tails
            if not report.events and not counts:
                continue
            ((count, last, lines),) = lab.sql("SELECT count(*), max(line), count(DISTINCT line) FROM stored_events")
            assert count == last == lines, "no line twice, none left out"
            counts.append(count)
        stop.touch()
        (written,) = map(int, writer.stdout.read().split())
    lab.ingest()
    assert counts == sorted(set(counts)), "each ingest brought something"
    assert pending > 0
    assert lab.sql("SELECT count(*), max(line) FROM stored_events") == [(written, written)]
    assert lab.sql("SELECT status, pending_bytes, lines FROM sources") == [("read", 0, written)]
    assert lab.sql("SELECT bytes_read FROM sources") == [(path.stat().st_size,)]
    once = Lab(tmp_path, "once")
    once.ingest()
    assert lab.content() == once.content()
    assert unsound(lab) == {}


@pytest.mark.parametrize(("size", "kind"), [(0, "skipped"), (1000, "rewritten"), (5000, "grown")])
def test_a_file_truncated_while_it_is_read(lab, monkeypatch, size, kind):
    """Counted is what was read, no line twice and none made up. The next ingest replaces it by what there is.

    Where that still begins with all that was read, it goes on behind it.
    """
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", RECORDED.read_bytes())
    with monkeypatch.context() as patch:
        half_way(patch, path, lambda: os.truncate(path, size))
        assert lab.ingest().problems == []
    whole = CLAUDE.read_bytes()[: max(size, 2000)].count(b"\n")
    assert lab.sql("SELECT count(DISTINCT line) FROM events WHERE run_id <> 'run_0001'") == [(whole,)]
    assert unsound(lab) == {}
    report = lab.ingest()
    told = {"skipped": len(report.skipped), "rewritten": report.files_rewritten, "grown": report.files_grown}
    assert {name for name, count in told.items() if count} == {kind}
    assert report.files_unchanged == 1
    fresh = Lab(lab.folder, "fresh")
    fresh.ingest()
    assert lab.content() == fresh.content()


@pytest.mark.parametrize("deed", ["deleted", "renamed"])
def test_a_file_deleted_or_renamed_while_it_is_read_is_read_whole(lab, monkeypatch, deed):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    with monkeypatch.context() as patch:
        half_way(patch, path, path.unlink if deed == "deleted" else lambda: path.rename(path.with_name("b.jsonl")))
        report = lab.ingest()
    assert (report.problems, report.lines) == ([], 37)
    assert lab.sql(STATES) == [("a.jsonl", "read", None)]
    report = lab.ingest()
    assert (report.files_gone, report.files_copied, report.lines) == (1, int(deed == "renamed"), 0)
    wanted = [("a.jsonl", "gone", "was read")] + [("b.jsonl", "copy", None)] * (deed == "renamed")
    assert lab.sql(STATES) == wanted
    assert [row["events"] for row in lab.metrics()] == [37]
    assert unsound(lab) == {}


# -- between the comparison with the ledger and the reading


def test_a_grown_file_that_vanishes_before_it_is_read_keeps_its_rows(lab, monkeypatch):
    path = lab.write("a.jsonl", CLAUDE.read_bytes()[:5000])
    lab.ingest()
    before = lab.content()
    path.write_bytes(CLAUDE.read_bytes())
    after_the_plan(monkeypatch, path.unlink)
    report = lab.ingest()
    assert report.problems == [(str(path), "cannot be opened: No such file or directory")]
    assert lab.content() == before
    assert unsound(lab) == {}
    assert lab.ingest().files_gone == 1
    assert lab.content()["events"] == before["events"]


def test_a_grown_file_that_is_rewritten_before_it_is_read_is_left_to_the_next_ingest(lab, monkeypatch):
    """A copy of what it was is then read itself; at once, that content would be nowhere."""
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.write("b.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    before = lab.content()
    with path.open("ab") as file:
        file.write(b"\n")
    after_the_plan(monkeypatch, lambda: path.write_bytes(CODEX.read_bytes() + CLAUDE.read_bytes()))
    report = lab.ingest()
    why = "cannot be read: it was rewritten while the ingest ran; the next one reads it anew"
    assert report.problems == [(str(path), why)]
    assert lab.content() == before
    path.write_bytes(CODEX.read_bytes())
    report = lab.ingest()
    assert (report.files_rewritten, report.files_new) == (1, 1)
    assert {row["run_id"]: row["events"] for row in lab.metrics()} == {"cx-7731": 26, "night-0412/claude-a": 37}
    assert unsound(lab) == {}


@pytest.mark.parametrize("deed", ["deleted", "rewritten"])
def test_the_first_of_two_equal_files_changes_before_it_is_read(lab, monkeypatch, deed):
    """The other is no copy of what the lake does not have: it is told, and read by the next ingest."""
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    other = lab.write("b.jsonl", CLAUDE.read_bytes())
    after_the_plan(monkeypatch, path.unlink if deed == "deleted" else lambda: path.write_bytes(CODEX.read_bytes()))
    report = lab.ingest()
    why = f"it is a copy of {path}, which changed before it was read; the next ingest reads it"
    assert (str(other), why) in report.problems
    assert report.files_copied == 0
    report = lab.ingest()
    assert (report.problems, report.files_new) == ([], 1)
    runs = {row["run_id"]: row["events"] for row in lab.metrics()}
    assert runs == {"night-0412/claude-a": 37} | ({"cx-7731": 26} if deed == "rewritten" else {})


def test_equal_files_that_are_nothing_of_ours_are_each_skipped(lab):
    for name in ("a.json", "b.json"):
        lab.write(name, b'{"x": 1}\n')
    report = lab.ingest()
    why = "no known wire by its content"
    assert report.skipped == [(str(lab.sources / name), why) for name in ("a.json", "b.json")]
    assert report.files_copied == 0
    assert lab.sql(STATES) == [("a.json", "skipped", why), ("b.json", "skipped", why)]
    assert lab.ingest().files_unchanged == 2


# -- between two ingests


def test_another_file_of_the_same_name_size_and_time_is_another_file(lab, forge):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    was = path.stat()
    other = lab.write("other", CLAUDE.read_bytes().replace(b'"output_tokens":811', b'"output_tokens":812'))
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.rename(path)
    now = path.stat()
    assert (now.st_size, now.st_mtime_ns) == (was.st_size, was.st_mtime_ns)
    assert state(forge, lab) == {"a.jsonl": "changed"}
    assert lab.ingest().files_rewritten == 1
    assert lab.metrics()[0]["output_tokens"] == 812
    assert state(forge, lab) == {"a.jsonl": "unchanged"}


def test_a_restored_copy_of_a_file_is_compared_once_and_not_read(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    before = lab.content()
    shutil.copy2(path, path.with_name("b"))
    path.with_name("b").rename(path)
    report = lab.ingest()
    assert (report.files_unchanged, report.events) == (1, 0)
    assert lab.content() == before
    assert lab.sql("SELECT inode FROM sources") == [(path.stat().st_ino,)]
    assert lab.ingest().version == report.version, "nothing is left to say"


def test_an_inode_of_64_bits_is_known_again(lab, monkeypatch):
    """Some FUSE file systems make them of a hash; the lake's integers have a sign."""
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    for name in ("stat", "fstat"):
        real = getattr(os, name)

        def high(*arguments, real=real, **options):
            info = real(*arguments, **options)
            return os.stat_result([*info[:1], info.st_ino | 1 << 63, *info[2:10], *info[7:10]], {
                "st_mtime_ns": info.st_mtime_ns, "st_atime_ns": info.st_atime_ns, "st_ctime_ns": info.st_ctime_ns,
            })  # fmt: skip

        monkeypatch.setattr(os, name, high)
    assert os.stat(path).st_ino > 1 << 63
    assert lab.ingest(path).files_new == 1
    assert lab.ingest(path).files_unchanged == 1


def state(forge: Forge, lab: Lab) -> dict[str, str]:
    """What `runlake status` says of each source."""
    told = forge.run("status", "--each", "--format", "json", "--lake", lab.path)
    return {os.path.basename(row["path"]): row["state"] for row in json.loads(told["out"])}


WORD = "zażółć 🚀 a\u0301 end"
SPOKEN = LINE.replace(b"word %d \xf0\x9f\x9a\x80", WORD.encode()).replace(b"%d", b"1")
CUTS = range(SPOKEN.index(WORD.encode()), SPOKEN.index(WORD.encode()) + len(WORD.encode()) + 1)


def test_a_line_that_comes_in_three_pieces_is_one_line(tmp_path, forge):
    """Cut inside characters, too: nothing of it is there before its end, and then all of it."""
    lab, once = Lab(tmp_path), Lab(tmp_path, "once")
    path = lab.write("a.jsonl", b"")
    before = CLAUDE.read_bytes()
    for cut in (CUTS[12], CUTS[-8]):
        path.write_bytes(before + SPOKEN[:cut])
        report = lab.ingest()
        assert (report.pending_tails, report.refusals_by_reason) == (1, {})
        assert lab.sql("SELECT status, lines, event_lines, refused_lines, pending_bytes, bytes_read FROM sources") == [
            ("read", 38, 37, 0, cut, len(before))
        ]
        assert lab.sql("SELECT tail FROM sources") == [(SPOKEN[:cut],)]
        assert unsound(lab) == {}
        told = forge.run("status", "--format", "json", "--lake", lab.path)
        assert [(row["pending_tails"], row["sources_unchanged"]) for row in json.loads(told["out"])] == [(1, 1)]
    path.write_bytes(before + SPOKEN)
    report = lab.ingest()
    assert (report.pending_tails, report.events, report.files_grown) == (0, 1, 1)
    assert lab.sql("SELECT payload FROM stored_events WHERE line = 38") == [(SPOKEN.decode().rstrip("\n"),)]
    once.ingest()
    assert lab.content() == once.content()


def test_a_line_cut_at_any_two_bytes_is_as_if_read_at_once(tmp_path):
    reader, path = Reader(tmp_path), tmp_path / "a.jsonl"
    data = CLAUDE.read_bytes().splitlines(keepends=True)[0] + SPOKEN
    path.write_bytes(data)
    whole = reader.read(path)[1].comparable()
    start = len(data) - len(SPOKEN)
    for cut in CUTS:
        made = reader.grow(path, data, [start + cut, min(start + cut + 1 + cut % 5, len(data) - 1)])
        assert made.comparable() == whole, f"cut behind {SPOKEN[:cut]!r}"
        reader.clear()


# -- what is no file, or may not be read: told by name, exit 0; with --strict exit 1 where it was meant to be read


def make(folder: Path, what: str) -> Path:
    """Something that is called like a source and is none."""
    path = folder / "x.jsonl"
    if what == "a FIFO":
        os.mkfifo(path)
    elif what == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = os.open(folder, os.O_RDONLY)  # the name of a socket is short
            made.bind(f"/proc/self/fd/{here}/x.jsonl")
            os.close(here)
    elif what == "a device":
        path.symlink_to("/dev/null")
    elif what == "a link to itself":
        path.symlink_to(path)
    elif what == "links in a ring":
        path.symlink_to(folder / "y.jsonl")
        (folder / "y.jsonl").symlink_to(path)
    elif what == "a link to nothing":
        path.symlink_to(folder / "nothing")
    elif what == "a link to the folder above":
        path.symlink_to(folder)
    return path


SPECIAL = {
    "a FIFO": ("skipped {}: a FIFO is not read; name it itself to read it", 0),
    "a socket": ("skipped {}: a socket is not read", 0),
    "a device": ("skipped {}: a device is not read", 0),
    "a link to itself": ("could not read {}: too many levels of symbolic links", 1),
    "links in a ring": ("could not read {}: too many levels of symbolic links", 1),
    "a link to nothing": ("could not read {}: the link leads nowhere", 1),
    "a link to the folder above": ("skipped {}: a link to a folder is not followed", 0),
}


def test_what_is_called_like_a_source_and_is_none(lab, forge):
    lab.write("a.jsonl", CLAUDE.read_bytes())
    told: dict[str, list[str]] = {}
    for number, (what, (words, _)) in enumerate(SPECIAL.items()):
        folder = lab.sources / str(number)
        folder.mkdir()
        told[what] = [words.format(make(folder, what)), str(folder)]
    done = forge.run("ingest", lab.sources, "--lake", lab.path)
    assert done["code"] == 0
    for what, (words, folder) in told.items():
        assert words in done["err"] or any(f"skipped {folder}" in line for line in done["err"].splitlines()), what
    assert lab.sql(STATES) == [("a.jsonl", "read", None)]
    assert state(forge, lab) == {"a.jsonl": "unchanged"}
    for number, (what, (_, strict)) in enumerate(SPECIAL.items()):
        report = lab.ingest(lab.sources / str(number))
        assert (len(report.problems) > 0) == bool(strict), what
        words = told[what][0].removeprefix("skipped ").removeprefix("could not read ")
        assert words in [f"{path}: {why}" for path, why in report.skipped + report.problems]
    for number, strict in ((0, 0), (3, 1)):
        assert forge.run("ingest", lab.sources / str(number), "--strict", "--lake", lab.path)["code"] == strict


def test_what_takes_the_place_of_a_file_that_was_read(lab, forge):
    """Its rows stay; on disk the source has changed (through the ring of a link it cannot be seen), and is not gone."""
    kinds = ["a FIFO", "a socket", "a device", "a link to itself", "a folder"]
    paths = [
        lab.write(f"{what}/x.jsonl", CLAUDE.read_bytes().replace(b"night-0412/claude-a", what.encode()))
        for what in kinds
    ]
    lab.ingest()
    before = lab.content()
    for what, path in zip(kinds, paths, strict=True):
        path.unlink()
        if what == "a folder":
            (path / "deep").mkdir(parents=True)
        else:
            make(path.parent, what)
    report = lab.ingest()
    assert (report.files_gone, report.version) == (0, 1)
    assert lab.content() == before
    told = forge.run("status", "--each", "--format", "json", "--lake", lab.path)
    states = {Path(row["path"]).parent.name: row["state"] for row in json.loads(told["out"])}
    assert states == dict.fromkeys(kinds, "changed") | {"a link to itself": "gone"}


def test_a_folder_named_like_a_file_is_a_folder(lab):
    lab.write("x.jsonl/y.jsonl", CLAUDE.read_bytes())
    report = lab.ingest()
    assert (report.files_new, report.skipped, report.problems) == (1, [], [])
    assert lab.sql(STATES) == [("y.jsonl", "read", None)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_somebody_may_not_read_is_told_keeps_its_rows_and_is_read_when_he_may(forge, what):
    nobody = 65534
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are root's alone
        os.chmod(name, 0o777)
        lab = Lab(Path(name))
        known, new = lab.write("f/known.jsonl", CLAUDE.read_bytes()[:5000]), lab.sources / "f/new.jsonl"
        open_to_all = lab.write("open.jsonl", RECORDED.read_bytes())
        command = ["ingest", lab.sources, "--lake", lab.path]
        for path in (lab.sources, lab.sources / "f", known, open_to_all):
            path.chmod(0o755)
        scout = forge.run("ingest", known, "--lake", Path(name, "scout"), "-o", "/dev/null", tells_imports=True)
        done = forge.run(*command, uid=nobody, imports=json.loads(scout["out"]))
        assert done["code"] == 0, done["err"]
        known.write_bytes(CLAUDE.read_bytes())
        new.write_bytes(TWO_RUNS.read_bytes())
        with open_to_all.open("ab") as file:
            file.write(b"\n")
        shut = [lab.sources / "f"] if what == "folder" else [known, new]
        for path in shut:
            path.chmod(0o000)
        done = forge.run(*command, uid=nobody)
        assert done["code"] == 0, done["err"]
        for path in shut:
            assert f"could not read {path}: " in done["err"]
        assert done["err"].lower().count("permission denied") == len(shut)
        assert lab.sql(STATES) == [("known.jsonl", "read", None), ("open.jsonl", "read", None)]
        assert lab.sql("SELECT blank_lines FROM sources WHERE path LIKE '%open%'") == [(1,)], "the others are read on"
        assert lab.sql("SELECT bytes_read + pending_bytes FROM sources WHERE path LIKE '%known%'") == [(5000,)]
        assert forge.run(*command, "--strict", uid=nobody)["code"] == 1
        for path in shut:
            path.chmod(0o755)
        assert forge.run(*command, "--strict", "--format", "json", uid=nobody)["code"] == 1, "refused lines, now"
        assert [row["events"] for row in lab.metrics() if row["run_id"] == "night-0412/claude-a"] == [37]
        assert len(lab.sql(STATES)) == 3
