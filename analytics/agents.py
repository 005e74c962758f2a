"""Where coding agents keep their transcripts on this machine: what `runlake ingest --agents` reads.

Claude Code: `projects` in its home, `~/.claude` (for a while `~/.config/claude`) or `CLAUDE_CONFIG_DIR`; beside it
`history.jsonl` and `transcripts/` hold no usage and are no sources (tokscale #565). Codex: `sessions` and
`archived_sessions` in `~/.codex` or `CODEX_HOME`. Either variable may list several homes with commas, as tools that
read them allow; a variable that is set replaces the default, since that is where the agent then writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analytics.discover import Found, discover, display


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of ours: the wire of its transcripts, the variable that moves its home, and what in there is read."""

    name: str
    wire: str
    variable: str
    homes: tuple[str, ...]
    folders: tuple[str, ...]


AGENTS: tuple[Agent, ...] = (
    Agent("Claude Code", "claude-code", "CLAUDE_CONFIG_DIR", ("~/.claude", "$XDG_CONFIG_HOME/claude"), ("projects",)),
    Agent("Codex", "codex-rollout", "CODEX_HOME", ("~/.codex",), ("sessions", "archived_sessions")),
)
SUFFIXES = (".jsonl", ".jsonl.zst", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Home:
    """A folder of transcripts, and what would be read of it now."""

    agent: Agent
    folder: str
    files: int
    size: int

    def __str__(self) -> str:
        """The home as a line for the person."""
        files = "1 file" if self.files == 1 else f"{self.files:,} files"
        return f"{self.agent.name}: {files}, {_size(self.size)}, in {display(self.folder)}"


def looked_in(environ: Mapping[str, str] = os.environ) -> list[tuple[Agent, str]]:
    """The folders in which transcripts may be, whether they exist or not."""
    return [(agent, folder) for agent in AGENTS for home in _homes(agent, environ) for folder in _folders(agent, home)]


def find_homes(environ: Mapping[str, str] = os.environ, *, wire: str | None = None) -> list[Home]:
    """The folders in which transcripts are; of one wire, or of all. A folder reached by two names is found once."""
    found: dict[str, Home] = {}
    for agent, folder in looked_in(environ):
        real = os.path.realpath(folder)
        if real in found or (wire is not None and wire != agent.wire) or not os.path.isdir(real):
            continue
        files = [one for one in discover([real]).found if is_transcript(one)]
        if files:
            found[real] = Home(agent, real, len(files), sum(one.size for one in files))
    return list(found.values())


def is_transcript(found: Found) -> bool:
    """True: a file that an agent writes rows to. What else stands beside them is read, too, but no reason to offer."""
    return found.path.lower().endswith(SUFFIXES)


def _homes(agent: Agent, environ: Mapping[str, str]) -> Iterator[str]:
    said = environ.get(agent.variable, "").strip()
    user = environ.get("HOME") or os.path.expanduser("~")
    if said:
        parts = [said] if os.path.isdir(said) else said.split(",")
        for part in parts:
            if part.strip():
                yield _expand(part.strip(), user, environ)
        return
    for home in agent.homes:
        yield _expand(home, user, environ)


def _expand(path: str, user: str, environ: Mapping[str, str]) -> str:
    """A path with the user's folders in it."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")
    path = path.replace("$XDG_CONFIG_HOME", config, 1)
    return os.path.join(user, path[2:]) if path.startswith("~/") else path


def _folders(agent: Agent, home: str) -> Iterator[str]:
    """The folders of a home; the variable may name such a folder itself."""
    if os.path.basename(home.rstrip("/")) in agent.folders:
        yield home
        return
    for folder in agent.folders:
        yield os.path.join(home, folder)


def _size(octets: int) -> str:
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if octets >= 10**power:
            return f"{octets / 10**power:,.1f} {unit}"
    return f"{octets} bytes"
