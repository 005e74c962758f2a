"""`runlake export --format openmetrics`: a golden text, read back by Prometheus' own parser, counted by hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import exports_lake
import native_make as make
import pytest
from conftest import ROOT
from exports_lake import GPT, HAIKU
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import analytics
from analytics import open_lake
from analytics.openmetrics import families

small, cli = exports_lake.small, exports_lake.cli  # fixtures
GOLDEN = Path(__file__).parent / "golden" / "exports" / "metrics.txt"

BY_HAND = {
    "runlake_runs": {("claude-code",): 1, ("claude-stream",): 1, ("codex-rollout",): 1},
    "runlake_runs_by_completeness": {("undecidable",): 1, ("closed",): 1, ("open",): 1},
    "runlake_model_tokens": {
        (HAIKU, "uncached_input", "false"): 350, (HAIKU, "cache_read", "false"): 2650,
        (HAIKU, "cache_write", "false"): 0, (HAIKU, "cache_write_5m", "false"): 0,
        (HAIKU, "cache_write_1h", "false"): 0, (HAIKU, "input", "false"): 3000, (HAIKU, "output", "false"): 70,
        (GPT, "uncached_input", "false"): 600, (GPT, "cache_read", "false"): 400, (GPT, "input", "false"): 1000,
        (GPT, "output", "false"): 60, (GPT, "reasoning", "false"): 20,
    },
    "runlake_vendor_cost_usd": {(): 0.25},
    "runlake_vendor_cost_usd_is_lower_bound": {(): 1},
    "runlake_runs_without_vendor_cost": {(): 2},
    "runlake_denied_calls": {("Bash",): 1},
    "runlake_denied_calls_is_lower_bound": {("Bash",): 1},
    "runlake_unfinished_calls": {("exec_command",): 1},
    "runlake_unfinished_calls_is_exact": {("exec_command",): 0},
    "runlake_refusals": {("claude-code", "not_json"): 1},
    "runlake_lines": {("event",): 12, ("refused",): 1, ("blank",): 0, ("pending",): 0},
    "runlake_rate_limit_peak_ratio": {("codex", "300"): 0.425},
}  # fmt: skip


def parsed(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def samples(family):
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


@pytest.fixture
def text(cli):
    code, out, err = cli("export", "--format", "openmetrics")
    assert code == 0, err
    return out.decode()


def test_the_parser_of_prometheus_reads_what_was_counted_by_hand(text):
    found = parsed(text)
    for name, expected in BY_HAND.items():
        assert samples(found[name]) == expected, name
    bounds = samples(found["runlake_model_tokens_is_lower_bound"])
    assert bounds.keys() == BY_HAND["runlake_model_tokens"].keys()
    assert {model: value for (model, _, _), value in bounds.items()} == {HAIKU: 1, GPT: 0}
    assert found.keys() == {*families(), "runlake"}


def test_types_units_and_help_are_there(text):
    found = parsed(text)
    assert {family.type for family in found.values()} == {"gauge", "info"}
    assert all(family.documentation for family in found.values())
    units = {name: family.unit for name, family in found.items() if family.unit}
    assert units == {
        "runlake_model_tokens": "tokens", "runlake_vendor_cost_usd": "usd", "runlake_rate_limit_peak_ratio": "ratio",
        "runlake_last_ingest_timestamp_seconds": "seconds",
    }  # fmt: skip
    assert text.endswith("\n# EOF\n")
    ((sample),) = found["runlake"].samples
    assert sample.labels == {"version": analytics.__version__, "lake_version": "1"}


def test_the_time_of_the_last_ingest_is_that_of_the_ledger(text, small):
    ((stamp,),) = small.sql("SELECT epoch_us(max(last_seen)) FROM sources").fetchall()
    assert samples(parsed(text)["runlake_last_ingest_timestamp_seconds"])[()] == stamp / 1_000_000


def test_the_text_is_as_agreed(text, update):
    made = re.sub(r"(?m)^(runlake_last_ingest_timestamp_seconds) .*", r"\1 0", text)
    made = made.replace(f'version="{analytics.__version__}"', 'version="0"')
    if update:
        GOLDEN.write_text(made, encoding="utf-8")
    assert made == GOLDEN.read_text(encoding="utf-8")


def test_what_is_unknown_has_no_sample(cli):
    code, out, _ = cli("export", "--format", "openmetrics", "--wire", "codex-rollout")
    found = parsed(out.decode())
    assert code == 0
    for name in ("runlake_vendor_cost_usd", "runlake_vendor_cost_usd_is_lower_bound", "runlake_denied_calls"):
        assert name not in found
    assert samples(found["runlake_runs"]) == {("codex-rollout",): 1}
    assert samples(found["runlake_runs_without_vendor_cost"]) == {(): 1}


def test_an_empty_lake_has_no_figures_but_zeros_that_are_known(tmp_path, capfd, monkeypatch):
    open_lake(tmp_path / "lake", create=True)
    monkeypatch.setenv("RUNLAKE_LAKE", str(tmp_path / "lake"))
    from analytics.cli import run

    assert run(["export", "--format", "openmetrics"]) == 0
    found = parsed(capfd.readouterr().out)
    assert {name: samples(family) for name, family in found.items() if name != "runlake"} == {
        "runlake_runs_without_vendor_cost": {(): 0}, "runlake_lines": {("pending",): 0},
    }  # fmt: skip


HOSTILE = ['a"b', "a\\b", "a\nb", "a\\nb", "\x1b[31mred", "\\x1b[31mred", 'x"} 1\n# EOF\n', "{}", " ", "a\u202eb"]


def test_hostile_labels_stay_labels(tmp_path, capfd, monkeypatch):
    session = make.Session("hostile").user()
    for number, name in enumerate(HOSTILE):
        session.answer(f"msg_{number}", make.usage(1, 1), make.tool(f"c{number}", name), stop="tool_use")
        session.result(f"c{number}", make.RULED_OUT, is_error=True)
    (tmp_path / "hostile.jsonl").write_bytes(session.data)
    lake = open_lake(tmp_path / "lake", create=True)
    lake.ingest(tmp_path / "hostile.jsonl")
    monkeypatch.setenv("RUNLAKE_LAKE", str(lake.path))
    from analytics.cli import run

    assert run(["export", "--format", "openmetrics"]) == 0
    text = capfd.readouterr().out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    denied = parsed(text)["runlake_denied_calls"].samples
    assert len(denied) == len(HOSTILE)
    assert sum(sample.value for sample in denied) == len(HOSTILE)
    told = {sample.labels["tool"] for sample in denied}
    assert {'a"b', "a\\b", "a\nb", "a\\nb", 'x"} 1\n# EOF\n', "{}"} <= told
    assert [sample.labels for sample in denied if "same_name" in sample.labels] == [
        {"tool": "\\x1b[31mred", "same_name": "2"}
    ]


def test_names_are_refused(cli):
    code, out, err = cli("export", "runs", "--format", "openmetrics")
    assert (code, out) == (2, b"")
    assert "Leave the names out." in err


@pytest.mark.parametrize(
    "arguments", [("--format", "openmetrics"), ("--json", "overview"), ("--format", "xlsx", "runs")]
)
def test_a_stdout_that_takes_nothing_is_told_in_a_sentence(small, arguments):
    command = [sys.executable, "-m", "analytics", "--lake", str(small.path), "export", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Could not write to stdout: no space left on device.")
