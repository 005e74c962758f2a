"""Runs as the wires of the agents' own files state them, for the queries: the statements matter, not the lines."""

from __future__ import annotations

CODE, STREAM, ROLLOUT, EXEC = "claude-code", "claude-stream", "codex-rollout", "codex-exec"
RANKS = {CODE: 10, STREAM: 5, ROLLOUT: 20, EXEC: 10}
END_RULES = {CODE: "none", STREAM: "turns", ROLLOUT: "turns", EXEC: "turns"}
SHARED = (CODE, ROLLOUT)


def run(wire, source, name, *rows, session=None, first=None, **spec):
    """A run in a source; its first row says how the stream is read and which session it shows."""
    session = name if session is None else session
    said = {"session_id": session, "view_rank": RANKS[wire]} if session else {}
    started = {"kind": "run.started", "event": "run", "attributes": said | spec.pop("said", {})}
    started |= {"parent_run_id": spec.pop("parent", None), "agent_id": spec.pop("agent", None)}
    opening = {"kind": "system", "end_rule": END_RULES[wire], "speaks": "tokens decisions results", "parts": [started]}
    opening |= first or {}
    return {
        "wire": wire, "source": source, "run": name, "is_shared": wire in SHARED, "rows": [opening, *rows], **spec,
    }  # fmt: skip


def answer(key, output, *, ts=None, tokens=10, read=None, final=True, **more):
    """A row of a Claude answer."""
    return {
        "kind": "message", "ts": ts, "usage_key": key, "request_id": key, "usage_scope": "snapshot", "requests": 1,
        "usage_is_final": final, "input_tokens": tokens, "cache_read_tokens": read, "output_tokens": output,
        "input_includes_cache": False, "model": "larch", **more,
    }  # fmt: skip


def moved(key, tokens, output, *, ts=None, **more):
    """A row of a rollout whose total moved."""
    return {
        "kind": "usage", "ts": ts, "usage_key": key, "request_id": key, "usage_scope": "delta", "requests": 1,
        "usage_is_final": True, "input_tokens": tokens, "output_tokens": output, "input_includes_cache": True, **more,
    }  # fmt: skip


def result(tokens, output, *, final=True, side=(), **more):
    """The end of a turn of a capture, with the totals by model."""
    totals = [(tokens, output, "larch"), *side]
    parts = [
        {
            "kind": "usage", "usage_scope": "turn_total", "usage_is_final": final, "input_tokens": t,
            "output_tokens": o, "input_includes_cache": False, "model": model,
        }
        for t, o, model in totals
    ]  # fmt: skip
    ended = {"kind": "turn.ended", "turn_id": "1"}
    return {"kind": "run.ended", "attributes": {"view_rank": 20}, "parts": [ended, *parts], **more}


def begun(turn="1"):
    return {"kind": "turn.started", "turn_id": turn}


def call(call_id, *, scope="claude", tool="Bash", **more):
    return {"kind": "tool.requested", "call_id": call_id, "call_scope": scope, "tool": tool, **more}


def finish(call_id, *, scope="claude", **more):
    return {"kind": "tool.finished", "call_id": call_id, "call_scope": scope, "is_error": False, **more}


def harness(source, name, *rows, **said):
    started = {"kind": "run.started", "end_rule": "none", "speaks": "tokens", "attributes": said}
    return {"wire": "harness-lab", "source": source, "run": name, "rows": [started, *rows]}


def recorded(message, output):
    """A message as a harness recorded it: the id, but no lake-wide key."""
    return {"kind": "usage", "usage_scope": "snapshot", "request_id": message, "requests": 1, "output_tokens": output}


def sample(resets, used, *, ts=None, status=None, limit="five_hour"):
    return {
        "kind": "rate_limit", "ts": ts, "limit_id": limit, "limit_window_minutes": 300, "limit_used": used,
        "limit_unit": "percent", "limit_resets_at": resets, "limit_status": status,
    }  # fmt: skip


def running(key, tokens, output, *, read=None, reasoning=None):
    """The end of a turn with the running total of its thread."""
    usage = {
        "kind": "usage", "usage_scope": "cumulative", "usage_key": key, "usage_is_final": True, "input_tokens": tokens,
        "cache_read_tokens": read, "output_tokens": output, "reasoning_tokens": reasoning, "input_includes_cache": True,
    }  # fmt: skip
    return {"kind": "turn.ended", "turn_id": "1", "parts": [usage]}
