"""What is found at a path, and what is told of a path that is not read."""

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from analytics.discover import SUFFIXES, Found, discover
from analytics.lake import Store


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return folder


def names(discovery, folder):
    return [os.path.relpath(found.path, folder) for found in discovery.found]


def reasons(discovery, folder):
    return {os.path.relpath(problem.path, folder): problem.reason for problem in discovery.problems}


def test_a_folder_is_searched_for_names_that_could_be_sources(tmp_path):
    make(tmp_path, "a.jsonl", "b/c.NDJSON", "b/.hidden/d.log", "e.txt.zst", "f.json.gz")
    make(tmp_path, "g.parquet", "h.md", "i.gz", "jsonl")
    result = discover([tmp_path])
    assert names(result, tmp_path) == ["a.jsonl", "b/.hidden/d.log", "b/c.NDJSON", "e.txt.zst", "f.json.gz"]
    assert (result.ignored, result.problems, result.listed) == (4, [], [str(tmp_path)])
    assert all(f"x{suffix}".endswith(SUFFIXES) for suffix in SUFFIXES)


def test_a_named_file_is_taken_whatever_its_name(tmp_path):
    make(tmp_path, "stream.dat", "no_suffix")
    result = discover([tmp_path / "stream.dat", str(tmp_path / "no_suffix")])
    assert names(result, tmp_path) == ["no_suffix", "stream.dat"]


def test_a_file_reached_twice_is_found_once(tmp_path):
    make(tmp_path, "sub/a.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "sub" / "a.jsonl")
    sub = tmp_path / "sub"
    given = [tmp_path, sub, sub / "a.jsonl", sub / ".." / "sub", f"{tmp_path}/*.jsonl"]
    assert names(discover(given), tmp_path) == ["sub/a.jsonl"]


def test_hard_links_are_two_names_of_which_the_ledger_tells_the_copy(tmp_path):
    make(tmp_path, "a.jsonl")
    os.link(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert names(discover([tmp_path]), tmp_path) == ["a.jsonl", "b.jsonl"]


def test_linked_folders_are_not_entered_and_loops_catch_nobody(tmp_path):
    make(tmp_path, "real/a.jsonl", "outside/x.jsonl")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "out.jsonl").symlink_to(tmp_path / "outside")
    (tmp_path / "real" / "self.jsonl").symlink_to("self.jsonl")
    (tmp_path / "real" / "broken.jsonl").symlink_to("nowhere")
    result = discover([tmp_path / "real"])
    assert names(result, tmp_path) == ["real/a.jsonl"]
    assert reasons(result, tmp_path) == {
        "real/out.jsonl": "a link to a folder is not followed",
        "real/self.jsonl": "too many levels of symbolic links",
        "real/broken.jsonl": "the link leads nowhere",
    }
    named = discover([tmp_path / "real" / "loop"])
    assert names(named, tmp_path) == ["real/a.jsonl"], "a link that is named itself is followed"


def test_a_folder_named_like_a_file_is_a_folder(tmp_path):
    make(tmp_path, "x.jsonl/inner.jsonl")
    assert names(discover([tmp_path]), tmp_path) == ["x.jsonl/inner.jsonl"]


def test_globs_match_hidden_names_and_any_suffix(tmp_path):
    make(tmp_path, "2026/a.jsonl", "2026/.b.jsonl", "2026/deep/er/c.jsonl", "2025/d.dat", "[odd]*.jsonl")
    found = {pattern: names(discover([f"{tmp_path}/{pattern}"]), tmp_path) for pattern in (
        "*/*.jsonl", "20??/d.*", "**/*.jsonl", "2026/**", "2026", "[[]odd]*", "[odd]*.jsonl",
    )}  # fmt: skip
    assert found == {
        "*/*.jsonl": ["2026/.b.jsonl", "2026/a.jsonl"],
        "20??/d.*": ["2025/d.dat"],
        "**/*.jsonl": ["2026/.b.jsonl", "2026/a.jsonl", "2026/deep/er/c.jsonl", "[odd]*.jsonl"],
        "2026/**": ["2026/.b.jsonl", "2026/a.jsonl", "2026/deep/er/c.jsonl"],
        "2026": ["2026/.b.jsonl", "2026/a.jsonl", "2026/deep/er/c.jsonl"],
        "[[]odd]*": ["[odd]*.jsonl"],
        "[odd]*.jsonl": ["[odd]*.jsonl"],
    }
    assert reasons(discover([f"{tmp_path}/*.none"]), tmp_path) == {"*.none": "no file matches the pattern"}


def test_a_relative_glob_starts_at_the_working_folder(tmp_path, monkeypatch):
    make(tmp_path, "a.jsonl", "sub/b.jsonl")
    monkeypatch.chdir(tmp_path)
    assert names(discover(["*.jsonl", "sub/*"]), tmp_path) == ["a.jsonl", "sub/b.jsonl"]


def test_a_double_star_enters_no_linked_folder(tmp_path):
    make(tmp_path, "a/x.jsonl")
    for name in ("one", "two"):
        (tmp_path / "a" / name).symlink_to(tmp_path)
    assert names(discover([f"{tmp_path}/**/x.jsonl"]), tmp_path) == ["a/x.jsonl"]


def test_special_files_in_a_folder_are_told_and_a_named_fifo_is_a_stream(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.log"))
        result = discover([tmp_path, f"{tmp_path}/*.jsonl"])
        assert reasons(result, tmp_path) == {
            "pipe.jsonl": "a FIFO is not read; name it itself to read it",
            "socket.log": "a socket is not read",
        }
        assert not any(problem.is_error for problem in result.problems)
    assert [f.kind for f in discover([tmp_path / "pipe.jsonl"]).found] == ["stream"]


def test_standard_input_and_a_pipe_of_the_shell_are_streams():
    assert discover(["-", "-"]).found == [Found("-", 0, 0, 0, "stream")]
    read, write = os.pipe()
    try:
        (found,) = discover([f"/dev/fd/{read}"]).found
        assert (found.path, found.kind) == (f"/dev/fd/{read}", "stream")
    finally:
        os.close(read)
        os.close(write)


def test_what_is_not_there_is_a_problem_and_known_as_missing(tmp_path):
    make(tmp_path, "a.jsonl")
    result = discover([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert names(result, tmp_path) == ["a.jsonl"]
    assert reasons(result, tmp_path) == {"b.jsonl": "there is no such file or folder"}
    assert result.missing == [str(tmp_path / "b.jsonl")]


def test_a_lake_is_never_read_as_a_source(tmp_path):
    make(tmp_path, "a.jsonl")
    lake = Store.open(tmp_path / "lake", create=True).root
    (tmp_path / "to lake.json").symlink_to(lake / "runlake.json")
    (tmp_path / "to log.json").symlink_to(lake / "_delta_log" / f"{0:020d}.json")
    for given in ([tmp_path], [f"{tmp_path}/**/*.json", tmp_path]):
        result = discover(given)
        assert names(result, tmp_path) == ["a.jsonl"]
        assert reasons(result, tmp_path) == {"lake": "it is a lake (a Delta table)"}
    for inside in (lake, lake / "record=event", lake / "_delta_log"):
        result = discover([inside])
        assert result.found == []
        assert [p.reason for p in result.problems] == ["it is a lake (a Delta table), or inside one"]
        assert result.problems[0].is_error


ODD = [b"line\nbreak.jsonl", b"quote'\".jsonl", b"\xff\xfe.jsonl", "é😀.jsonl".encode(), b" lead.jsonl", b"a%20b.jsonl"]


def test_odd_names_are_kept_and_shown_escaped(tmp_path):
    for name in ODD:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(b"{}\n")
    result = discover([tmp_path])
    assert sorted(os.fsencode(os.path.basename(f.path)) for f in result.found) == sorted(ODD)
    assert [f.path for f in result.found] == sorted((f.path for f in result.found), key=os.fsencode)
    for found in result.found:
        found.display.encode()
        assert os.stat(found.path).st_size == found.size
    assert f"{tmp_path}/\\xff\\xfe.jsonl" in [f.display for f in result.found]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_a_folder_that_cannot_be_read_is_a_problem_not_a_crash(tmp_path):
    make(tmp_path, "open/a.jsonl", "closed/b.jsonl", "half/c.jsonl")
    (tmp_path / "closed").chmod(0o000)
    (tmp_path / "half").chmod(0o744)
    for place in [tmp_path, *tmp_path.parents]:
        if place != Path("/tmp"):
            place.chmod(place.stat().st_mode | 0o055) if str(place).startswith("/tmp/") else None
    code = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from analytics.discover import discover
        os.setgid(65534); os.setuid(65534)
        result = discover([{str(tmp_path)!r}, {str(tmp_path / "closed" / "b.jsonl")!r}])
        print([f.path for f in result.found], [(p.path, p.reason) for p in result.problems], result.unlisted)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "open" / "a.jsonl") in done.stdout
    assert f"('{tmp_path}/closed', 'permission denied')" in done.stdout
    assert f"('{tmp_path}/half/c.jsonl', 'permission denied')" in done.stdout


def test_a_folder_that_changes_while_it_is_listed(tmp_path):
    """Files come and go; every answer is a listing, never an exception."""
    stop = threading.Event()

    def churn():
        number = 0
        while not stop.is_set():
            path = tmp_path / f"{number % 50}.jsonl"
            path.unlink() if path.exists() else path.write_text("x")
            number += 1

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        for _ in range(50):
            assert all(not p.is_error or "vanished" in p.reason for p in discover([tmp_path]).problems)
    finally:
        stop.set()
        worker.join()


@pytest.mark.slow
def test_a_hundred_thousand_files_take_seconds(tmp_path):
    for folder in range(100):
        (tmp_path / str(folder)).mkdir()
        for name in range(1000):
            os.close(os.open(tmp_path / str(folder) / f"{name}.jsonl", os.O_CREAT))
    began = time.perf_counter()
    assert len(discover([tmp_path]).found) == 100_000
    assert time.perf_counter() - began < 10
