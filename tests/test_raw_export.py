"""`runlake export --raw`: the bytes of a source or run again, and on stderr whatever is not as it was."""

from __future__ import annotations

import gzip
import os
import pty
import subprocess
import sys

import pytest
from conftest import CORPUS, ROOT
from helpers import BLOCKED, CLAUDE, CODEX, TWO_RUNS, Lab
from test_conservation import DAMAGE, ROWS, SECRET, damaged, sound  # noqa: F401 (a fixture)

from analytics.cli import run


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


@pytest.fixture
def export(lab, capfdbinary):
    """The command: (exit code, stdout, stderr)."""

    def go(name, *more):
        capfdbinary.readouterr()
        code = run(["export", "--raw", str(name), "--lake", str(lab.path), *map(str, more)])
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return go


def test_a_source_by_path_by_id_and_from_its_folder(lab, export, monkeypatch, tmp_path):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    [(source_id,)] = lab.sql("SELECT source_id FROM sources")
    monkeypatch.chdir(lab.sources)
    for name in (path, source_id, "a.jsonl"):
        assert export(name) == (0, CLAUDE.read_bytes(), "")
    assert export(path, "-o", tmp_path / "again") == (0, b"", "")
    assert (tmp_path / "again").read_bytes() == CLAUDE.read_bytes()


def test_secrets_are_counted(lab, export):
    data = CLAUDE.read_bytes().replace(b'":"', b'":"' + SECRET + b" ", 1) + b"not JSON " + SECRET + b"\n"
    path = lab.write("a.jsonl", data + b"tail " + SECRET)
    lab.ingest()
    code, out, err = export(path)
    assert (code, out) == (0, path.read_bytes().replace(SECRET, b"[REDACTED:sk_key]"))
    assert err.startswith("3 secrets were replaced when this was read")


def test_a_long_line_is_missing_and_named(lab, export):
    long = b'{"a":"' + b"x" * (3 << 20) + b'"}'
    first, *rest = CLAUDE.read_bytes().splitlines(keepends=True)
    path = lab.write("a.jsonl", first + long + b"\n" + b"".join(rest))
    lab.ingest(max_line_bytes=100_000)
    code, out, err = export(path)
    assert code == 1
    assert out == first + long[: 1 << 20] + b"\n" + b"".join(rest)
    lost = f"{len(long) - (1 << 20):,}"
    assert f"line 2 of {path}: {lost} bytes cannot be given back: line_too_long, of which the first 1,048,576" in err
    assert "Incomplete: " in err


@pytest.mark.parametrize("before", [0, 30_000])
def test_a_long_line_that_is_kept_whole_comes_back(lab, export, before):
    """Once only what stood in the block was kept, so how much came back depended on where the line began."""
    first, *rest = CLAUDE.read_bytes().splitlines(keepends=True)
    long = b'{"a":"' + b"x" * 900_000 + b'"}\n'
    path = lab.write("a.jsonl", first + b" " * before + b"\n" + b"".join(rest) + long * 6)
    lab.ingest(max_line_bytes=1024)
    assert export(path) == (0, path.read_bytes(), "")


def test_a_pending_tail_beyond_the_limit_is_missing_and_named(lab, export):
    path = lab.write("a.jsonl", CLAUDE.read_bytes() + b'{"a":"' + b"x" * (2 << 20))
    lab.ingest()
    code, out, err = export(path)
    assert code == 1
    assert out == path.read_bytes()[: len(out)]
    assert f"{path.stat().st_size - len(out):,} bytes cannot be given back: pending tail" in err


def test_a_file_refused_whole(lab, export):
    small = lab.write("a.jsonl", "UTF-16 text".encode("utf-16") * 1000)
    large = lab.write("b.jsonl", "UTF-16 text".encode("utf-16") * 100_000)
    lab.ingest()
    assert export(small) == (0, small.read_bytes(), "")
    code, out, err = export(large)
    assert (code, out) == (1, large.read_bytes()[: 1 << 20])
    assert "not_utf8_file, of which the first 1,048,576 bytes are kept" in err


def test_compressed_data_comes_back_decompressed_and_a_cut_one_is_incomplete(lab, export):
    whole = lab.write("a.jsonl.gz", gzip.compress(CLAUDE.read_bytes()))
    cut = lab.write("b.jsonl.gz", gzip.compress(CODEX.read_bytes())[:-200])
    lab.ingest()
    code, out, err = export(whole)
    assert (code, out) == (0, CLAUDE.read_bytes())
    assert err == f"{whole} is gzip: these are its bytes decompressed.\n"
    code, out, err = export(cut)
    assert code == 1
    assert CODEX.read_bytes().startswith(out)
    assert 0 < len(out) < CODEX.stat().st_size
    assert f"{cut}: what follows cannot be given back: it could not be read to its end (compressed_data_broken)" in err


def test_a_copy_gives_the_bytes_of_its_original(lab, export):
    paths = [lab.write(name, BLOCKED.read_bytes()) for name in ("a.jsonl", "b.jsonl")]
    lab.ingest()
    said = [export(path) for path in paths]
    assert [one[:2] for one in said] == [(0, BLOCKED.read_bytes())] * 2
    assert sorted(one[2] for one in said)[1].endswith("which was read for it.\n")


def test_a_source_that_is_gone_comes_back(lab, export):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    path.unlink()
    lab.ingest()
    assert export(path) == (0, CLAUDE.read_bytes(), "")


def test_a_run_has_its_own_lines(lab, export):
    lab.write("a.jsonl", TWO_RUNS.read_bytes())
    lab.ingest()
    lines = TWO_RUNS.read_bytes().splitlines(keepends=True)
    runs = [run_id for (run_id,) in lab.sql("SELECT run_id FROM runs")]
    assert len(runs) == 2
    for run_id in runs:
        own = b"".join(line for line in lines if f'"run":"{run_id}"'.encode() in line and line.endswith(b"}\n"))
        code, out, _ = export(run_id)
        assert code == 0
        assert out == own


def test_a_run_in_two_pieces_comes_in_its_order(lab, export):
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    lab.write("b.jsonl", b"".join(lines[:5]))
    lab.write("a.jsonl", b"\n" + b"".join(lines[5:]))
    lab.ingest()
    [(run_id,)] = lab.sql("SELECT run_id FROM runs")
    assert export(run_id) == (0, CLAUDE.read_bytes(), "")


def test_a_run_in_a_document_and_one_of_glued_records(lab, export):
    lab.write("d.json", next((CORPUS / "harness-lab").glob("export-*.json")).read_bytes())
    other = ROWS[1].replace(b'"sessionId": "s"', b'"sessionId": "t"')
    lab.write("s.jsonl", ROWS[0] + other + ROWS[2] + b"\n" + ROWS[3] + ROWS[4] + b"\n")
    lab.ingest()
    assert export("s") == (0, b"\n".join([ROWS[0], ROWS[2], ROWS[3] + ROWS[4], b""]), "")
    assert export("t") == (0, other + b"\n", "")
    [(run_id, lines)] = lab.sql("SELECT run_id, lines FROM run_pieces WHERE wire = 'harness-lab' ORDER BY 1 LIMIT 1")
    code, out, err = export(run_id)
    assert (code, out.count(b'"sequence"')) == (0, lines)
    assert "is one document: these are the run's events in it" in err


@pytest.mark.parametrize("more", [["runs"], ["--format", "csv"], ["--wire", "metaharness"], ["--since", "7d"]])
def test_nothing_else_goes_with_it(lab, export, more):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    code, out, err = export(path, *more)
    assert (code, out) == (2, b"")
    assert "--raw writes one source or run as it was" in err


def test_what_is_not_there_is_said(lab, export):
    path = lab.write("a.jsonl", b"nothing that is known\n")
    lab.ingest()
    code, out, err = export("no-such-run")
    assert (code, out) == (2, b"")
    assert "No source and no run of this lake is called 'no-such-run'" in err
    code, out, err = export(path)
    assert (code, out) == (1, b"")
    assert "was skipped (no known wire by its content), so none of its bytes are in the lake" in err


@pytest.mark.parametrize("what", ["an event is gone", "a payload is shorter", "a refusal is gone", "a blank is longer",
                                  "an event in a document", "a skeleton", "a file refused whole"])  # fmt: skip
def test_a_damaged_lake_gives_no_file(sound, tmp_path, capfd, what):  # noqa: F811 (the fixture)
    record, is_meant, change, (name, _, _) = DAMAGE[what]
    path = damaged(sound, tmp_path, record, is_meant, change)
    out = tmp_path / "out"
    assert run(["export", "--raw", str(sound.sources / name), "--lake", str(path), "-o", str(out)]) == 1
    assert "is damaged" in capfd.readouterr().err
    assert not out.exists()


def test_bytes_do_not_go_to_a_terminal(lab):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "analytics", "export", "--raw", path, "--lake", lab.path],
        stdout=theirs, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True, timeout=60,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert "Add -o FILE" in done.stderr


def test_what_grew_under_another_name_is_that_file_now(lab, export):
    data = CLAUDE.read_bytes()
    cut = data.index(b"\n") + 1
    before = lab.write("a.jsonl", data[:cut])
    lab.ingest()
    after = before.rename(before.with_name("b.jsonl"))
    after.write_bytes(data)
    lab.ingest()
    code, out, err = export(before)
    assert (code, out) == (1, b"")
    assert f"Export {after}." in err
    assert export(after)[:2] == (0, data)
    assert run(["check", "--lake", str(lab.path)]) == 0


def test_a_copy_that_is_gone_is_no_hole(lab):
    lab.write("a.jsonl", CLAUDE.read_bytes())
    second = lab.write("b.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    second.unlink()
    lab.ingest()
    assert run(["check", "--lake", str(lab.path)]) == 0


def test_sources_and_lakes_are_not_written_over(lab, export):
    path = lab.write("a.jsonl", CLAUDE.read_bytes())
    lab.ingest()
    code, _, err = export(path, "-o", path)
    assert code == 2
    assert "is a source of this lake" in err
    assert path.read_bytes() == CLAUDE.read_bytes()
    code, _, err = export(path, "-o", lab.path / "runlake.json")
    assert code == 2
    assert "is inside the lake" in err
