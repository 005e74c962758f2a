"""Which thread a session_meta opens, where the thread comes from, and what it says of its run.

The thread is the meta's `id`, never its `session_id`, which is the root's in every child (trap 58). A parent is named
in one of four places, for a spawned agent sometimes only deep inside `source` (trap 57).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from analytics.wires.base import micros
from analytics.wires.codex_rollout_lines import (
    ANY,
    GIT,
    HISTORY_BASE,
    Git,
    HistoryBase,
    Payload,
    raw,
    word,
)

PAGED = "paginated"
UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread by one of its metas; `said` becomes attributes of the run."""

    id: str
    parent: str | None
    base: str | None
    is_paged: bool
    created_at: int | None
    said: dict[str, Any]


def thread_of(p: Payload) -> Thread | None:
    """The thread; None where it has no id."""
    own = word(p.id)
    if own is None:
        return None
    source, spawn = origin(raw(p.source, ANY))
    git, page = raw(p.git, GIT), raw(p.history_base, HISTORY_BASE)
    base = None
    if type(page) is HistoryBase:
        base = word(page.thread_id) or word(page.rollout_id) or own
    forked_from = word(p.forked_from_id)
    spawned_by = word(p.parent_thread_id) or word(spawn.get("parent_thread_id"))
    parent = forked_from or spawned_by or base
    said = {
        "cwd": word(p.cwd),
        "git_branch": word(git.branch) if type(git) is Git else None,
        "git_commit": word(git.commit_hash) if type(git) is Git else None,
        "version": word(p.cli_version),
        "originator": word(p.originator),
        "source": source,
        "thread_source": word(p.thread_source),
        "model_provider": word(p.model_provider),
        "agent_nickname": word(p.agent_nickname) or word(spawn.get("agent_nickname")),
        "agent_role": word(p.agent_role) or word(spawn.get("agent_role")),
        "depth": spawn.get("depth") if type(spawn.get("depth")) is int else None,
        "root_id": word(p.session_id),
        "forked_from": forked_from,
        "spawned_by": spawned_by,
        "history_base": base,
    }
    is_paged = base is not None or p.history_mode == PAGED
    created = micros(word(p.timestamp))
    created_at = None if created is None else created // 1_000_000
    return Thread(own, None if parent == own else parent, base, is_paged, created_at, said)


def origin(source: Any) -> tuple[str | None, dict[str, Any]]:
    """A source as one word ("cli", "subagent/review", "subagent/thread_spawn"), and what it says of a spawn."""
    names: list[str] = []
    while type(source) is dict and len(source) == 1:
        name, source = next(iter(source.items()))
        names.append(name)
    if type(source) is str:
        names.append(source)
    return "/".join(names)[:200] or None, source if type(source) is dict else {}


def is_older(turn: str | None, started_at: Any, thread: str, created_at: int | None) -> bool | None:
    """True: the turn began before the thread did, so a fork only repeats it; None: nothing tells.

    Both ids are UUIDs of version 7 in all newer versions and carry milliseconds; `started_at` is whole seconds.
    """
    began, born = milliseconds(turn), milliseconds(thread)
    if began is not None and born is not None:
        return began < born
    if type(started_at) in (int, float) and created_at is not None:
        return bool(started_at < created_at)
    return None


def milliseconds(name: str | None) -> int | None:
    """The time in a UUID of version 7."""
    found = None if name is None else UUID7.fullmatch(name)
    return None if found is None else int(found[1] + found[2], 16)
