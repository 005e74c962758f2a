"""What needs no state in Codex exec rows: configuration, counters, names of MCP tools, files of a patch, limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from analytics.wires.base import in_bounds
from analytics.wires.codex_exec_lines import (
    CHANGES,
    MCP_ANSWER,
    MCP_RESULT,
    PATHS,
    Header,
    Length,
    Limits,
    McpResult,
    Usage,
    is_said,
    word,
)

ROUNDED = {299: 300, 10_079: 10_080}  # windows that some builds wrote a minute short


def usage_columns(usage: Usage) -> dict[str, Any]:
    """The counters; cached input and reasoning are inside input and output."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_output_tokens,
        "input_includes_cache": True,
        "usage_is_final": True,
    }


def mcp_name(server: Any, tool: Any) -> str:
    """An MCP tool as both vendors name it to the model."""
    return f"mcp__{word(server) or 'unknown'}__{word(tool) or 'unknown'}"


def changed_files(changes: Raw) -> Iterator[tuple[str, str | None]]:
    """Path and kind (add, delete, update) of the files of an item."""
    try:
        found = CHANGES.decode(changes) if is_said(changes) else []
    except msgspec.MsgspecError:
        return
    for change in found:
        path = word(change.path)
        kind = change.kind.get("type") if isinstance(change.kind, dict) else change.kind
        if path is not None:
            yield path, word(kind)


def patched_paths(changes: Raw) -> list[str]:
    """The files that a patch names before it is applied."""
    try:
        return list(PATHS.decode(changes)) if is_said(changes) else []
    except msgspec.MsgspecError:
        return []


def answer_is_error(result: Raw) -> bool | None:
    """Whether an MCP call failed: on our side (Err), or by the server's own word."""
    try:
        found = MCP_RESULT.decode(result) if is_said(result) else McpResult()
        if not is_said(found.Ok):
            return True if is_said(found.Err) else None
        answer = MCP_ANSWER.decode(found.Ok)
    except msgspec.MsgspecError:
        return None
    return answer.isError is True or answer.is_error is True


def milliseconds(length: Length | str | None) -> int | None:
    """Length in milliseconds."""
    return length.secs * 1000 + length.nanos // 1_000_000 if isinstance(length, Length) else None


def limit_parts(limits: Limits | None) -> Iterator[dict[str, Any]]:
    """One row per window that says how much of it is used; windows are told apart by their length, not their slot."""
    if limits is None:
        return
    flat = (
        (limits.primary_used_percent, limits.primary_window_minutes, None),
        (limits.secondary_used_percent, limits.secondary_window_minutes, None),
    )
    nested = tuple(
        (window.used_percent, window.window_minutes, window.resets_at)
        for window in (limits.primary, limits.secondary)
        if window is not None
    )
    for used, minutes, resets_at in nested or flat:
        if used is None:
            continue
        yield {
            "limit_id": word(limits.limit_id),
            "limit_name": word(limits.limit_name),
            "limit_window_minutes": ROUNDED.get(minutes, minutes) if minutes is not None else None,
            "limit_used": used,
            "limit_unit": "percent",
            "limit_resets_at": in_bounds(resets_at * 1_000_000) if resets_at is not None else None,
            "limit_status": word(limits.rate_limit_reached_type),
        }


def configuration(o: Header) -> dict[str, str]:
    """What the configuration says of the run, under the names that other wires of Codex use."""
    said = {
        "cwd": o.workdir, "model": o.model, "model_provider": o.provider, "approval_policy": o.approval,
        "sandbox": o.sandbox, "effort": o.effort,
    }  # fmt: skip
    return {name: value for name, value in said.items() if type(value) is str and value}
