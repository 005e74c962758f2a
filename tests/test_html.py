"""The page as a file: what it forbids, what stands in it, how large it is; and charts from Python."""

from __future__ import annotations

import builtins
import json
import re
import time

import pytest
from conftest import ROOT
from helpers import CLAUDE, Lab

from analytics import open_lake
from analytics.cli import run
from analytics.errors import UsageError
from analytics.html.board import label, unit
from analytics.html.page import POLICY, inert
from analytics.pictures import pictures

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def page(sample_lake, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "denials.html"
    assert run(["report", "denials", "--by", "tool", "--html", str(out), "--lake", str(sample_lake.path)]) == 0
    return out.read_text(encoding="utf-8")


def test_nothing_may_be_fetched():
    allowed = dict(part.split(" ", 1) for part in POLICY.split("; "))
    assert allowed.pop("default-src") == "'none'"
    assert set(allowed.values()) == {"'none'", "'unsafe-inline'"}
    assert "unsafe-eval" not in POLICY


def test_it_names_no_address_to_load(page):
    outside = page[: page.index('<script type="application/json"')]
    assert POLICY in outside
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", outside)
    assert not re.search(r"@import|url\(", outside)


@pytest.mark.parametrize(
    "text", ["</script><img src=x onerror=alert(1)>", "<!--<script>", "]]>", "&lt;", "a\u2028b\u2029c", '"\\', "\x00"]
)
def test_data_neither_ends_nor_begins_an_element(text):
    made = inert({"a": text}).decode()
    assert not re.search("[<>&\u2028\u2029]", made)
    assert json.loads(made) == {"a": text}


def test_named_reports_alone(page, sample_lake):
    data = json.loads(DATA.search(page)[1])
    assert list(data["tables"]) == ["denials_by_tool"]
    assert len(data["charts"]) == 1
    assert "CREATE OR REPLACE VIEW report_denials_by_tool" in page
    assert "runlake report denials --by tool" in page


def test_filters_are_said_and_hold(sample_lake, tmp_path):
    out = tmp_path / "page.html"
    arguments = ["--wire", "metaharness", "--since", "2026-11-03", "--where", "denied_calls > 2"]
    assert run(["report", "denials", "--html", str(out), *arguments, "--lake", str(sample_lake.path)]) == 0
    text = out.read_text()
    for said in ("wire metaharness", "since 2026-11-03", "where denied_calls &gt; 2"):
        assert f'<span class="chip">{said}</span>' in text
    rows = sample_lake.report("denials", wire="metaharness", since="2026-11-03", where="denied_calls > 2").fetchall()
    data = json.loads(DATA.search(text)[1])
    assert data["tables"]["denials"]["n"] == len(rows) > 0
    wires = sample_lake.sql("SELECT run_id FROM runs WHERE wire = 'metaharness'").fetchall()
    assert set(data["runs"]) <= {row[0] for row in wires}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "x.html", "--format", "csv"], "give it without --format, --top and -o"),
        (["--html", "x.html", "--where", "runs > 1"], "name that report"),
        (["--html", "x.html", "--set", "a=1"], "no parameter 'a'"),
        (["nope", "--html", "x.html"], "no report 'nope'"),
    ],
)
def test_what_cannot_be_is_a_usage_error(sample_lake, tmp_path, monkeypatch, capfd, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run(["report", *arguments, "--lake", str(sample_lake.path)]) == 2
    assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_missing_extra_is_named(sample_lake, tmp_path, monkeypatch, capfd, missing):
    real = builtins.__import__

    def without(name, *rest):
        if name == missing:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["report", "--html", str(tmp_path / "x.html"), "--lake", str(sample_lake.path)]) == 2
    assert "pip install 'runlake[report]'" in capfd.readouterr().err
    if missing == "altair":
        with pytest.raises(UsageError, match=r"pip install 'runlake\[report\]'"):
            sample_lake.chart("denials")


def test_a_report_of_ones_own_has_a_section(sample_lake, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.sql").write_text(
        "-- Mine & yours\n-- picture: bar wire runs\nSELECT wire, runs FROM report_overview\n"
    )
    (own / "asks.sql").write_text("-- Asks\n-- param: day DATE\nSELECT getvariable('day') AS day\n")
    out = tmp_path / "page.html"
    lake = ["--lake", str(sample_lake.path), "--reports", str(own)]
    assert run(["report", "mine", "--html", str(out), *lake]) == 0
    text = out.read_text()
    assert "<h2>Mine &amp; yours</h2>" in text
    assert "mine" in json.loads(DATA.search(text)[1])["tables"]
    assert run(["report", "--html", str(out), *lake]) == 0
    text = out.read_text()
    assert '<section id="report-mine">' in text
    assert "The report asks asks for day (DATE): give --set day=VALUE" in text


def test_a_chart_is_an_altair_chart(sample_lake):
    import altair as alt

    made = sample_lake.chart("tokens_by_day").to_dict()
    values = made["data"]["values"]
    rows = sample_lake.sql("SELECT day, total_tokens FROM report_tokens_by_day WHERE day IS NOT NULL").fetchall()
    assert {row["x"]: row["y"] for row in values} == {str(day): tokens for day, tokens in rows if tokens is not None}
    assert isinstance(sample_lake.chart("denials", by="tool"), alt.TopLevelMixin)
    assert sample_lake.chart("tokens", picture=1).to_dict()["mark"]["type"] == "bar"
    assert sample_lake.report("denials", by="tool").pl().height > 0


def test_a_chart_that_is_not_there(sample_lake):
    with pytest.raises(UsageError, match=r"no picture 0: its header draws nothing"):
        sample_lake.chart("transcript")
    with pytest.raises(UsageError, match=r"no picture 5: its header draws 2: 0 to 1"):
        sample_lake.chart("tokens", picture=5)
    with pytest.raises(UsageError, match="no report 'tokenz'"):
        sample_lake.chart("tokenz")


@pytest.mark.parametrize(
    ("name", "said", "of"),
    [
        ("duration_ms", "Duration", "ms"), ("cost_usd", "Cost", "usd"), ("p95_ms", "p95", "ms"), ("ms", "Ms", "ms"),
        ("cache_read_percent", "Cache read", "percent"), ("percent", "Share", "percent"), ("runs", "Runs", "count"),
    ],
)  # fmt: skip
def test_headings_are_words_and_units_are_known(name, said, of):
    assert (label(name), unit(name)) == (said, of)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("none", []), ("", []), ("bar a b", [("bar", ("a", "b"))]),
        ("column d t m; line d s", [("column", ("d", "t", "m")), ("line", ("d", "s"))]),
        ("histogram a b n p50 p90", [("histogram", ("a", "b", "n", "p50", "p90"))]),
    ],
)  # fmt: skip
def test_a_picture_line_is_read(text, made):
    assert [(one.kind, one.columns) for one in pictures(text)] == made


def test_the_pictures_of_readme_are_those_of_the_sample_corpus(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import pictures as script

    made = script.make(tmp_path)
    assert {path.name for path in made} == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    for path in made:
        assert path.read_text() == (ROOT / "docs" / "pictures" / path.name).read_text(), "run python docs/pictures.py"


@pytest.mark.long
def test_ten_thousand_runs_stay_below_eight_megabytes(tmp_path):
    lab = Lab(tmp_path)
    lines = CLAUDE.read_bytes()
    (run_id,) = {json.loads(line)["run"] for line in lines.splitlines() if "run" in json.loads(line)}
    for file in range(100):
        runs = [lines.replace(run_id.encode(), f"{run_id}/{file}/{n}".encode()) for n in range(100)]
        lab.write(f"{file}.jsonl", b"".join(runs))
    lab.ingest()
    with open_lake(lab.path) as lake:
        ((count,),) = lake.sql("SELECT count(*) FROM runs").fetchall()
    assert count == 10_000
    began = time.process_time()
    out = tmp_path / "page.html"
    assert run(["report", "--html", str(out), "--lake", str(lab.path)]) == 0
    assert out.stat().st_size < 8_000_000
    assert time.process_time() - began < 60
