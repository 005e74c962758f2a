"""Hostile text through a real ingest: whatever a run, a tool or a reason is called, no output acts on it."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from helpers import Lab
from hostile import HOSTILE, write_hostile

from analytics.cli import run

ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FORMATS = ["table", "json", "jsonl", "csv", "md", "html"]
COMMANDS = [
    ["runs"],
    ["refused"],
    ["status", "--each"],
    ["status"],
    ["check"],
    ["history"],
    ["report", "denials", "--by", "tool"],
    ["report", "coverage"],
    ["report", "token_usage"],
]  # fmt: skip
QUERIES = [
    "FROM events",
    "FROM transcript",
    """SELECT run_id AS "=x|<b>`\x1b[1m", [tool] AS l, {'k': reason} AS s, MAP {reason: 1} AS m
    FROM events WHERE reason IS NOT NULL""",
]
# each query in every format, each other command in two
CASES = [
    *((["sql", query], format_) for query in QUERIES for format_ in FORMATS),
    *((command, FORMATS[(n + k) % 6]) for n, command in enumerate(COMMANDS) for k in (0, 3)),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A lake of hostile texts."""
    made = Lab(tmp_path_factory.mktemp("inert"))
    write_hostile(made)
    return made


def output(capfd, *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    said = capfd.readouterr()
    return code, said.out, said.err


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add((tag, tuple(name for name, _ in attrs)))


def check_inert(text: str, format_: str) -> None:
    acting = ACTS.findall(text.replace("\r", "").replace("\t", "") if format_ == "csv" else text)
    assert acting == []
    if format_ == "csv":
        for row in list(csv.reader(io.StringIO(text, newline=""))):
            for cell in row:
                assert cell[:1] not in set("=+-@\t\r\n") or re.fullmatch(r"-?[0-9.]+", cell), cell
    if format_ in ("json", "jsonl"):
        assert [json.loads(part) for part in ([text] if format_ == "json" else text.splitlines())]
        assert len(text.splitlines()) == text.count("\n")
    if format_ == "md":
        rows = text.splitlines()
        counts = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}
        assert len(counts) == 1
        assert all(row.startswith("| ") and row.endswith(" |") for row in rows)
        assert not re.search(r"[<>]|://|(?<!\\)(?:\\\\)*[`*\[\]~]|www\.|(?<!&#64)@", text)
    if format_ == "html":
        tags = Tags()
        tags.feed(text)
        allowed = {"html", "meta", "title", "style", "table", "thead", "tbody", "tr", "th", "td"}
        assert {tag for tag, _ in tags.seen} <= allowed
        assert {name for _, names in tags.seen for name in names} <= {
            "lang",
            "charset",
            "http-equiv",
            "content",
            "class",
        }
        assert "default-src 'none'" in text


@pytest.mark.parametrize(("command", "format_"), CASES)
def test_no_output_of_a_command_acts(lab, capfd, command, format_):
    code, out, err = output(capfd, *command, "--format", format_, "--lake", str(lab.path))
    assert code == 0, err
    assert out.count("\n") >= 1
    check_inert(out, format_)
    assert ACTS.findall(err) == []


@pytest.mark.parametrize("text", HOSTILE[::5])
def test_show_is_inert(lab, capfd, text):
    code, out, err = output(capfd, "show", "--lake", str(lab.path), "--", text)
    assert code == 0, err
    check_inert(out, "table")
    assert ACTS.findall(err) == []


def test_exported_files_are_inert(lab, capfd, tmp_path):
    for format_ in ("csv", "html"):
        folder = tmp_path / format_
        code, _, err = output(capfd, "export", "runs", "refusals", "-o", str(folder), "--format", format_,
                              "--lake", str(lab.path))  # fmt: skip
        assert code == 0, err
        for file in folder.iterdir():
            with file.open(encoding="utf-8", newline="") as opened:
                check_inert(opened.read(), format_)


def test_nothing_is_lost_by_being_harmless(lab, capfd):
    """json and jsonl escape and keep; csv as raw text gives every character back."""
    _, out, _ = output(capfd, "sql", "SELECT DISTINCT run_id FROM events", "--format", "jsonl", "--lake", str(lab.path))
    assert {json.loads(line)["run_id"] for line in out.splitlines()} == set(HOSTILE)
    _, out, _ = output(capfd, "sql", "SELECT DISTINCT run_id FROM events", "--format", "csv", "--csv-formulas", "raw",
                       "--lake", str(lab.path))  # fmt: skip
    rows = list(csv.reader(io.StringIO(out, newline="")))[1:]
    assert {row[0] for row in rows} == set(HOSTILE)


def test_numbers_stay_numbers_in_csv(lab, capfd):
    query = "SELECT -5 AS i, -0.5::DOUBLE AS f, -1.25::DECIMAL(9, 2) AS d, -1e-7::DOUBLE AS e, '-5' AS t, '+5' AS p"
    _, out, _ = output(capfd, "sql", query, "--format", "csv", "--lake", str(lab.path))
    assert out == "i,f,d,e,t,p\n-5,-0.5,-1.25,-1e-07,'-5,'+5\n"


@pytest.mark.parametrize("arguments", [
    ["show", "nope\x1b[31m\u202e"],
    ["show", "one"],
    ["show", ""],
    ["sql", "SELECT error(run_id) FROM events WHERE run_id LIKE '%red%'"],
    ["sql", "SELECT run_id::INT FROM events"],
    ["sql", 'FROM "nope\x1b[31m"'],
    ["runs", "--where", "error(run_id) = 1"],
    ["runs", "--wire", "nope\x1b[31m"],
    ["report", "nope\x1b[31m\u202e"],
    ["ingest", "/nope\x1b[31m\u202e"],
    ["sql", "-f", "/nope\x1b[31m\u202e"],
])  # fmt: skip
def test_errors_are_inert(lab, capfd, arguments):
    code, out, err = output(capfd, *arguments, "--lake", str(lab.path))
    assert ACTS.findall(err) == []
    assert ACTS.findall(out) == []
    assert code in (1, 2) or arguments == ["show", "one"]
    assert "\nError: three" not in err, "a run's id makes no line of its own"


def test_what_an_ingest_says_of_its_files_is_inert(lab, capfd, tmp_path):
    code, out, err = output(capfd, "ingest", str(lab.sources), "--lake", str(tmp_path / "other"))
    assert code == 0
    assert "skipped" in err
    assert ACTS.findall(err + out) == []
