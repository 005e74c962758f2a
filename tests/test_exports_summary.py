"""`runlake report --format md`: a bounded summary for a pull request's comment, with what is unknown below it."""

from __future__ import annotations

import io
import re
from pathlib import Path

import duckdb
import exports_lake
import native_make as make
import pytest
from exports_lake import TOUCHED

import analytics
from analytics import open_lake
from analytics.api import MAIN_REPORTS
from analytics.reportset import Report
from analytics.rows import rows_of
from analytics.sqlfiles import find
from analytics.summary import LONGEST, write_summary

small, cli = exports_lake.small, exports_lake.cli  # fixtures
GOLDEN = Path(__file__).parent / "golden" / "exports" / "summary.md"


def sections(text):
    """Title → the lines below it."""
    parts = re.split(r"(?m)^## (.+)$", text)
    return {title: body.strip().splitlines() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.fixture
def text(cli):
    code, out, err = cli("report", "--format", "md")
    assert code == 0, err
    return out.decode()


def test_every_main_report_has_its_heading_and_its_rows(text):
    made = sections(text)
    titles = [find("reports", name).title for name in MAIN_REPORTS]
    assert list(made) == [*titles, "Data quality"]
    overview = [dict(zip(cells(made[titles[0]][0]), cells(line), strict=True)) for line in made[titles[0]][2:]]
    assert [row["wire"] for row in overview] == ["claude-code", "claude-stream", "codex-rollout", "all"]
    assert [row["input_tokens"] for row in overview] == ["≥ 2,000", "1,000", "1,000", "≥ 4,000"]
    assert [row["cost_usd"] for row in overview] == ["–", "\\$0.2500", "–", "≥ \\$0.2500"]
    assert [row["denied_calls"] for row in overview] == ["≥ 1", "0", "≥ 0", "≥ 1"]
    assert [row["tool_calls_unfinished"] for row in overview] == [
        "0 open so far",
        "0",
        "1 open so far",
        "1 open so far",
    ]


def test_what_is_unknown_or_a_bound_is_said(text):
    notes = sections(text)["Data quality"]
    found = re.findall(r"(?m)^\* (.+): ([\d,]+) of ([\d,]+) \w+ \(", "\n".join(notes))
    assert {topic: (int(touched), int(of_all)) for topic, touched, of_all in found} == TOUCHED


def test_the_summary_is_as_agreed(text, update):
    made = text.replace(f"runlake {analytics.__version__}.", "runlake 0.")
    if update:
        GOLDEN.write_text(made, encoding="utf-8")
    assert made == GOLDEN.read_text(encoding="utf-8")


def test_top_bounds_the_rows_and_says_how_many_more(cli):
    code, out, _ = cli("report", "overview", "runs", "--format", "md", "--top", 1)
    made = sections(out.decode())
    assert code == 0
    assert made[find("reports", "overview").title][-1] == "… and 3 more rows."
    assert made[find("reports", "runs").title][-1] == "… and 2 more rows."


def test_one_report_grouped_and_filtered_is_summed_up_too(cli):
    code, out, _ = cli(
        "report", "denials", "--by", "tool", "--wire", "claude-code", "--where", "denied_calls > 0", "--top", 5,
        "--format", "md",
    )  # fmt: skip
    text = out.decode()
    assert code == 0
    assert f"runlake {analytics.__version__}, wire claude-code." in text
    assert "| Bash | ≥ 1 | 1 | 1 |" in text


def test_rows_alone_stay_as_they_were(cli):
    code, out, _ = cli("report", "overview", "--format", "md")
    assert code == 0
    assert out.startswith(b"| wire | runs |")
    assert b"tokens_are_lower_bound" in out


def test_top_is_for_the_summary(cli):
    code, out, err = cli("report", "overview", "--top", 3)
    assert (code, out) == (2, b"")
    assert "--top is for --format md." in err
    assert cli("report", "overview", "--format", "md", "--top", 0)[0] == 2


HOSTILE = ["a | b", "<script>alert(1)</script>", "[x](javascript:alert(1))", "![x](http://evil.example/x.png)", "`x`",
           "**b**", "@someone", "# x", "one\ntwo", "\x1b[31mred", "a\u202eb", "https://evil.example", "<!-- x",
           "| --- |", "x" * 500, "</details>", "$x$", "~~x~~", "www.evil.example"]  # fmt: skip


def test_hostile_text_does_nothing(tmp_path, capfd, monkeypatch):
    session = make.Session("hostile").user()
    for number, name in enumerate(HOSTILE):
        session.answer(f"msg_{number}", make.usage(1, 1), make.tool(f"c{number}", name), stop="tool_use", model=name)
        session.result(f"c{number}", make.RULED_OUT, is_error=True)
    (tmp_path / "hostile.jsonl").write_bytes(session.data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "hostile.jsonl")
    monkeypatch.setenv("RUNLAKE_LAKE", str(lake.path))
    from analytics.cli import run

    assert run(["report", "--format", "md", "--top", "100"]) == 0
    text = capfd.readouterr().out
    rows = sections(text)[find("reports", "denials").title]
    assert len(rows) == 2 + len(HOSTILE)
    assert {len(cells(line)) for line in rows} == {len(cells(rows[0]))}
    assert not re.search(r"[<\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "://" not in text
    assert "www." not in text
    assert "@" not in text
    assert not re.search(r"(?<!\\)[`\[\]]", text)
    assert max(len(line) for line in rows) < 1000


def test_the_text_never_grows_beyond_what_a_comment_holds():
    def report(name, rows):
        query = f"SELECT repeat('x', 200) AS t, range FROM range({rows})"
        return Report(name, name, name, rows_of(duckdb.connect().sql(query)))

    quality = Report("data_quality", "Data quality", "", rows_of(duckdb.connect().sql("""
        FROM (VALUES ('x', 'runs', 1::BIGINT, 2::BIGINT, 0.5::DOUBLE)) AS t(topic, unit, touched, of_all, share)
    """)))  # fmt: skip
    to = io.BytesIO()
    write_summary([report("small", 3), report("huge", 5000), report("after", 2)], quality, "# head", 100_000, to)
    text = to.getvalue().decode()
    assert len(text) < LONGEST
    assert "Left out, since the text would be too long: huge." in text
    assert list(sections(text)) == ["small", "after", "Data quality"]
    assert "* x: 1 of 2 runs (50 %)" in text
