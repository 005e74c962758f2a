"""The small lake of the export tests, and what it holds, counted by hand from the three files of fixtures/exports.

night.jsonl: a Claude Code session. Two requests (100 + 900 read, 10 out; 50 + 950 read, 20 out), a call of Bash that a
    rule denied, and a last line that is not JSON. Session files write no end, and what the broken line said is unknown.
walls.jsonl: a Codex rollout. One request (1,000 in, 400 of them read; 60 out, 20 of them reasoning), a limit used to
    42.5 %, and a call of exec_command that no output follows; its turn is still open.
batch.jsonl: a capture of `claude -p`, whole. 200 + 800 read, 40 out, a cost of $0.25 by the vendor's word. No times.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from helpers import FIXTURES

HAIKU, GPT = "claude-haiku-4-5-20251001", "gpt-5.2-codex"
FILES = FIXTURES / "exports"
AT_TEN, AT_ONE_MINUTE_PAST = datetime(2026, 5, 4, 10, tzinfo=UTC), datetime(2026, 5, 4, 10, 1, tzinfo=UTC)

# report → rows, of each the columns that were counted
BY_HAND = {
    "overview": [
        {"wire": "claude-code", "runs": 1, "closed_runs": 0, "broken_runs": 0, "refusals": 1, "input_tokens": 2000,
         "output_tokens": 30, "tokens_are_lower_bound": True, "cost_usd": None, "runs_without_cost": 1,
         "tool_calls": 1, "denied_calls": 1, "denials_are_lower_bound": True, "tool_calls_unfinished": 0,
         "unfinished_is_exact": False, "first_at": AT_TEN},
        {"wire": "claude-stream", "runs": 1, "closed_runs": 1, "broken_runs": 0, "refusals": 0, "input_tokens": 1000,
         "output_tokens": 40, "tokens_are_lower_bound": False, "cost_usd": 0.25, "runs_without_cost": 0,
         "tool_calls": 0, "denied_calls": 0, "denials_are_lower_bound": False, "tool_calls_unfinished": 0,
         "unfinished_is_exact": True, "first_at": None},
        {"wire": "codex-rollout", "runs": 1, "closed_runs": 0, "broken_runs": 1, "refusals": 0, "input_tokens": 1000,
         "output_tokens": 60, "tokens_are_lower_bound": False, "cost_usd": None, "runs_without_cost": 1,
         "tool_calls": 1, "denied_calls": 0, "denials_are_lower_bound": True, "tool_calls_unfinished": 1,
         "unfinished_is_exact": False, "first_at": AT_ONE_MINUTE_PAST},
        {"wire": "all", "runs": 3, "closed_runs": 1, "broken_runs": 1, "refusals": 1, "input_tokens": 4000,
         "output_tokens": 130, "tokens_are_lower_bound": True, "cost_usd": 0.25, "runs_without_cost": 2,
         "tool_calls": 2, "denied_calls": 1, "denials_are_lower_bound": True, "tool_calls_unfinished": 1,
         "unfinished_is_exact": False, "first_at": AT_TEN},
    ],
    "token_usage": [
        {"model": HAIKU, "is_side_call": False, "runs": 2, "input_tokens": 3000, "uncached_input_tokens": 350,
         "cache_read_tokens": 2650, "output_tokens": 70, "reasoning_tokens": None, "total_tokens": 3070,
         "cost_usd": 0.25, "cost_is_lower_bound": True, "is_lower_bound": True},
        {"model": GPT, "is_side_call": False, "runs": 1, "input_tokens": 1000, "uncached_input_tokens": 600,
         "cache_read_tokens": 400, "output_tokens": 60, "reasoning_tokens": 20, "total_tokens": 1060,
         "cost_usd": None, "cost_is_lower_bound": True, "is_lower_bound": False},
    ],
    "denials_by_tool": [{"tool": "Bash", "denied_calls": 1, "records": 1, "runs": 1, "is_lower_bound": True}],
    "unfinished_by_tool": [{"tool": "exec_command", "unfinished": 1, "runs": 1, "is_exact": False}],
    "rate_limits": [{"limit_id": "codex", "window_minutes": 300, "peak_used_percent": 42.5, "samples": 1,
                     "resets_at": datetime(2026, 5, 4, 12, 30, tzinfo=UTC)}],
    "orphan_results": [],
}  # fmt: skip

# data quality: of three runs one is open, one writes no end, one has no time, one (night) is short of a line, two have
# no cost, two are not whole as to denials and to calls; of 13 lines one is refused
TOUCHED = {
    "no end yet, the run may go on": (1, 3), "the wire writes no end": (1, 3), "no time on record": (1, 3),
    "tokens are a lower bound": (1, 3), "vendor cost unknown": (2, 3), "denied calls are a lower bound": (2, 3),
    "calls may yet finish": (2, 3), "refused": (1, 13),
}  # fmt: skip


def small_lake(folder):
    """The lake at folder/lake, in one commit."""
    from analytics import open_lake

    lake = open_lake(folder / "lake", create=True)
    lake.ingest(FILES)
    return lake


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small lake; tests only read it."""
    return small_lake(tmp_path_factory.mktemp("exports"))


@pytest.fixture
def cli(small, capfdbinary, monkeypatch):
    """Runs one command over the small lake in this process: (exit code, stdout as bytes, stderr)."""
    from analytics.cli import run

    monkeypatch.setenv("RUNLAKE_LAKE", str(small.path))

    def go(*arguments):
        capfdbinary.readouterr()
        code = run([str(argument) for argument in arguments])
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return go


def counted(rows, name):
    """Of each row the columns that were counted by hand."""
    expected = BY_HAND[name]
    columns = expected[0] if expected else {}
    return [{column: row[column] for column in columns} for row in rows]
