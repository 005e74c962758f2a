"""The three tools: how to find and run them on a fake home, and how to read their figures.

Figures carry the names of truth.json. One that a tool does not offer is absent, which is not 0.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Figures = dict[str, float]
PINNED = {"ccusage": "20.0.24", "agentsview": "0.46.1"}
NOWHERE = "http://127.0.0.1:9"  # no peer may fetch prices, look for updates or report its use
ROOT = Path(__file__).resolve().parents[2]

INSTALL = f"""Install the peers into any folder DIR:

    npm install --prefix DIR ccusage@{PINNED["ccusage"]}
    python3 -m venv DIR/venv && DIR/venv/bin/pip install agentsview=={PINNED["agentsview"]}

and say --peers DIR, or name the programs with --ccusage FILE and --agentsview FILE."""


def environment(home: Path) -> dict[str, str]:
    """What a tool sees: the fake home and nothing of the real one.

    A clean environment, because each peer reads a dozen variables of other agents, too.
    """
    if home.resolve() == Path.home().resolve() or not (home / ".claude").is_dir():
        raise SystemExit(f"{home} is no fake home")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CODEX_HOME": str(home / ".codex"),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "false",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
    }


def output(command: list[str], home: Path, more: dict[str, str]) -> str:
    """Run a command in the home and return what it prints."""
    done = subprocess.run(command, cwd=home, env=environment(home) | more, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


class Tool(Protocol):
    """A program with commands to time and figures to compare. `scratch` is its own folder for one home."""

    @property
    def name(self) -> str:
        """As its table column is called."""

    def variables(self, scratch: Path) -> dict[str, str]:
        """What it needs in its environment beside the home."""

    def figures(self, home: Path, scratch: Path) -> Figures:
        """Read the home and say what was used."""


@dataclass(frozen=True, slots=True)
class Runlake:
    """This repository, run by the interpreter that runs this script."""

    name: str = "runlake"

    def variables(self, scratch: Path) -> dict[str, str]:
        """Where its lake is."""
        return {"RUNLAKE_LAKE": str(scratch / "lake"), "PYTHONPATH": str(ROOT)}

    def command(self, *words: str) -> list[str]:
        """A command line of its own."""
        return [sys.executable, "-m", "analytics", *words]

    def ingest(self) -> list[str]:
        """All transcripts of the home, into the lake."""
        return self.command("ingest", ".claude/projects", ".codex")

    def report(self, name: str) -> list[str]:
        """One report of the lake."""
        return self.command("report", name, "--format", "json")

    def rows(self, sql: str, home: Path, scratch: Path) -> list[dict[str, Any]]:
        """What a query over the lake gives."""
        text = output(self.command("sql", sql, "--format", "json"), home, self.variables(scratch))
        rows: list[dict[str, Any]] = json.loads(text)
        return rows

    def figures(self, home: Path, scratch: Path) -> Figures:
        """Ingest, then metrics by SQL and sums by its reports."""
        output(self.ingest(), home, self.variables(scratch))
        found: Figures = {}
        for row in self.rows(
            "SELECT wire, sum(input_tokens) AS input, sum(uncached_input_tokens) AS uncached,"
            " sum(cache_read_tokens) AS cache_read, sum(cache_write_tokens) AS cache_write,"
            " sum(output_tokens) AS output, sum(reasoning_tokens) AS reasoning, sum(requests) AS requests,"
            " sum(tool_calls) AS calls, sum(tool_calls_unfinished) AS unfinished, sum(denied_calls) AS denied"
            " FROM run_metrics WHERE is_counted GROUP BY wire",
            home,
            scratch,
        ):
            agent = {"claude-code": "claude", "codex-rollout": "codex"}[row["wire"]]
            names = CLAUDE_COLUMNS if agent == "claude" else CODEX_COLUMNS
            found |= {f"{agent}.{name}": row[column] for name, column in names.items() if row[column] is not None}
            found[f"{agent}.session list"] = row["output"]
        for row in self.rows(
            "SELECT count(*) AS windows, max(peak_used_percent) FILTER (WHERE window_minutes = 300) AS peak"
            " FROM rate_limit_windows",
            home,
            scratch,
        ):
            found |= {"codex.limit_windows": row["windows"]}
            if row["peak"] is not None:
                found["codex.primary_peak_percent"] = row["peak"]
        for what in ("run", "day", "model"):
            text = output(self.report(f"token_usage_by_{what}"), home, self.variables(scratch))
            rows = [row for row in json.loads(text) if row.get("is_counted") is not False]
            found[f"all.tokens by {what}"] = sum(row[part] or 0 for row in rows for part in PARTS)
        return found


PARTS = ("uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
CLAUDE_COLUMNS = {
    "input": "uncached",
    "output": "output",
    "cache_create": "cache_write",
    "cache_read": "cache_read",
    "messages": "requests",
    "tool_uses": "calls",
    "unfinished": "unfinished",
    "denied": "denied",
}
CODEX_COLUMNS = {
    "input": "input",
    "cached": "cache_read",
    "output": "output",
    "reasoning": "reasoning",
    "turns": "requests",
    "tool_calls": "calls",
    "unfinished": "unfinished",
}


def _tokens(found: Figures, agent: str, row: dict[str, Any]) -> None:
    """Add a row of four disjoint parts, as both peers name them, under the names of truth.json."""
    parts = {
        "output": row["outputTokens"],
        "cached" if agent == "codex" else "cache_read": row["cacheReadTokens"],
        # Codex's own input has the cached part inside; both peers take it out
        "input": row["inputTokens"] + (row["cacheReadTokens"] if agent == "codex" else 0),
    }
    if agent == "claude":
        parts["cache_create"] = row["cacheCreationTokens"]
    for name, value in parts.items():
        found[f"{agent}.{name}"] = found.get(f"{agent}.{name}", 0) + value


def _total(row: dict[str, Any]) -> int:
    names = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    return sum(int(row[name]) for name in names)


def _nothing_yet() -> Figures:
    """A peer that leaves an agent out of its report says that it used nothing."""
    empty: Figures = {"claude.session list": 0, "codex.session list": 0}
    zero = dict.fromkeys(("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens"), 0)
    for agent in ("claude", "codex"):
        _tokens(empty, agent, zero)
    return empty


@dataclass(frozen=True, slots=True)
class Ccusage:
    """ccusage keeps nothing: each report reads all files."""

    program: str
    name: str = "ccusage"

    def variables(self, scratch: Path) -> dict[str, str]:
        """Nothing: it has no store."""
        return {}

    def report(self, *words: str) -> list[str]:
        """One report over all files, prices from its own table."""
        return [self.program, *words, "--json", "--offline"]

    def figures(self, home: Path, scratch: Path) -> Figures:
        """From its reports by day and by session."""
        daily, sessions, codex = (
            json.loads(output(self.report(*words), home, {}))
            for words in (("daily", "--by-agent"), ("session",), ("codex", "session"))
        )
        found = _nothing_yet()
        for day in daily["daily"]:
            for agent in day["agents"]:
                _tokens(found, agent["agent"], agent)
        for session in sessions["session"]:
            found[f"{session['agent']}.session list"] += session["outputTokens"]
        found["codex.reasoning"] = sum(session["reasoningOutputTokens"] for session in codex["sessions"])
        found["all.tokens by day"] = sum(_total(day) for day in daily["daily"])
        found["all.tokens by run"] = sum(_total(session) for session in sessions["session"])
        found["all.tokens by model"] = sum(_total(row) for day in daily["daily"] for row in day["modelBreakdowns"])
        return found


@dataclass(frozen=True, slots=True)
class Agentsview:
    """agentsview syncs into SQLite; its commands for calls want a daemon, so calls are read from the database."""

    program: str
    name: str = "agentsview"

    def variables(self, scratch: Path) -> dict[str, str]:
        """Where its database is."""
        return {"AGENTSVIEW_DATA_DIR": str(scratch / "agentsview")}

    def sync(self) -> list[str]:
        """All transcripts of the home, into its database."""
        return [self.program, "sync"]

    def usage(self) -> list[str]:
        """Its report of all days."""
        return [self.program, "usage", "daily", "--all", "--breakdown", "--json", "--offline", "--no-sync"]

    def figures(self, home: Path, scratch: Path) -> Figures:
        """Sync, then its reports by day and by session, and its tables of sessions and calls."""
        variables = self.variables(scratch)
        output(self.sync(), home, variables)
        usage = json.loads(output(self.usage(), home, variables))
        found = _nothing_yet()
        for day in usage["daily"] or []:
            for row in day["agentBreakdowns"]:
                _tokens(found, row["agent"], row)
        found["all.tokens by day"] = _total(usage["totals"])
        found["all.tokens by model"] = sum(
            _total(row) for day in usage["daily"] or [] for row in day["modelBreakdowns"]
        )
        export = [self.program, "export", "sessions", "--all", "--format", "ndjson"]
        export.extend(f"--include-{kind}" for kind in ("children", "one-shot", "automated"))
        by_run = 0
        for line in output(export, home, variables).splitlines():
            used = json.loads(line).get("model_usage") or {}
            by_run += sum(used.get(name, 0) for name in EXPORTED)
        found["all.tokens by run"] = by_run
        database = sqlite3.connect(f"file:{scratch / 'agentsview' / 'sessions.db'}?mode=ro", uri=True)
        try:
            for agent, tokens in database.execute(
                "SELECT agent, sum(total_output_tokens) FROM sessions GROUP BY agent"
            ):
                found[f"{agent}.session list"] = tokens
            for agent, calls, without_result in database.execute(CALLS):
                found[f"{agent}.{'tool_uses' if agent == 'claude' else 'tool_calls'}"] = calls
                found[f"{agent}.unfinished"] = without_result
        finally:
            database.close()
        for model, priced in (usage["pricing"].get("models") or {}).items():
            agent = "claude.messages" if model.startswith("claude") else "codex.turns"
            requests = sum(way["application"]["base_request_count"] for way in priced["resolutions"])
            found[agent] = found.get(agent, 0) + requests
        return found


EXPORTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
CALLS = """
    SELECT s.agent, count(*), count(*) FILTER (WHERE NOT EXISTS (
        SELECT 1 FROM tool_result_events AS e WHERE e.session_id = c.session_id AND e.tool_use_id = c.tool_use_id
    ))
    FROM tool_calls AS c JOIN sessions AS s ON s.id = c.session_id GROUP BY s.agent
"""


def find(name: str, told: Path | None, peers: Path | None) -> str:
    """The program of a peer in its pinned version, or how to install it."""
    places = [told] if told else []
    if peers and not told:
        places = [peers / "node_modules" / ".bin" / name, peers / "venv" / "bin" / name]
    found = [str(place.resolve()) for place in places if place.is_file()]
    program = found[0] if found else shutil.which(name) if not told else None
    if program is None:
        raise SystemExit(f"{name} is not there.\n\n{INSTALL}")
    bare = {"PATH": os.environ["PATH"], "HOME": os.devnull}
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, env=bare).stdout
    if PINNED[name] not in version:
        raise SystemExit(f"{program} is {version.strip()}, not {PINNED[name]}.\n\n{INSTALL}")
    return program
