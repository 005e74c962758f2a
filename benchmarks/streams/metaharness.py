"""metaharness.event/1: runs of the adapters claude, codex and b10x in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streams.voice import REASONS, TASKS, Voice

TOOLS = ("Bash", "Bash", "Bash", "Read", "Read", "Edit", "Write", "Grep")
OPERATIONS = {"Bash": "shell", "Read": "file.read", "Edit": "file.edit", "Write": "file.write", "Grep": "search"}
UNKNOWN_LISTS = (
    '"offered_tools":null,"withheld":null,"slash_commands":null,"skills":null,"agents":null,"plugins":null,'
    '"mcp_servers":null'
)
HERMETIC = (
    '{"mode":"strict","decisions":"ask","imposed":[{"row":"h5","how":"flag"}],"unavailable":[],"ambient_inputs":[],'
    '"installed_plugins":[]}'
)
LOOSE = ("null", "null", "null", '{"interrupted":false}', '"Error: exit code 1"', '[{"type":"text","text":"done"}]')
UNSAID = (
    '"api_error_status":null,"num_turns":null,"duration_ms":null,"duration_api_ms":null,"ttft_ms":null,'
    '"time_to_request_ms":null'
)


def run(v: Voice, number: int, more: Callable[[], bool]) -> Iterator[str]:
    """One run from its start to its marker, of as many rounds as there is room for."""
    adapter = ("claude", "codex", "claude", "b10x")[number % 4]
    task = v.pick(TASKS)
    name = f"night-{number % 23}/{task}/{adapter}-plain/r{number}"
    seq = 0
    census = {"allow": 0, "deny": 0}

    def own(event: str, rest: str) -> str:
        nonlocal seq
        seq += 1
        return f'{{"format":"metaharness.event/1","seq":{seq},"run":"{name}","event":"{event}",{rest}}}'

    def vendor(event: str, rest: str) -> str:
        nonlocal seq
        if adapter == "b10x":
            return own(event, rest)
        seq += 1
        return (
            f'{{"format":"metaharness.event/1","seq":{seq},"run":"{name}","at":"{v.iso()}Z","event":"{event}",{rest}}}'
        )

    def usage(request: str, model: str, parts: tuple[int, ...]) -> str:
        into, read, write, out = parts
        wrote = write if adapter == "claude" else "null"
        return (
            f'"request_id":{request},"model":{model},"usage":{{"input_tokens":{into},"output_tokens":{out},'
            f'"cache_read_input_tokens":{read},"cache_creation_input_tokens":{wrote},'
            '"service_tier":null,"thinking_tokens":null,"iterations":null,"speed":null,"cost_usd":null}'
        )

    def requested(call: str, tool: str, given: str, seam: str) -> str:
        asked = seam == "hook"
        operation = f'"operations":["{OPERATIONS[tool]}"],' if tool in OPERATIONS else ""
        return vendor(
            "tool.requested",
            f'"call_id":"{call}","name":"{tool}","input":{given},{operation}'
            f'"decision_required":{"true" if asked else "false"},"deadline_ms":{25000 if asked else "null"},'
            f'"seam":"{seam}"',
        )

    def decided(call: str) -> str:
        decision = "deny" if v.chance() < 0.04 else "allow"
        census[decision] += 1
        reason = f',"reason":"{v.pick(REASONS)}"' if decision == "deny" else ""
        return own(
            "tool.decided",
            f'"call_id":"{call}","decision":{{"decision":"{decision}"{reason}}},"decided_by":"embedder","seam":"hook",'
            f'"latency_ms":{v.between(0, 900)}',
        )

    def result(call: str, is_error: str, content: str) -> str:
        told = f'"{content}","bytes":{len(content)}' if content else 'null,"bytes":null'
        return vendor(
            "tool.result",
            f'"call_id":"{call}","is_error":{is_error},"content":{told},"tool_use_result":{v.pick(LOOSE)},'
            '"exit_code":null,"outcome_source":null',
        )

    model = {"claude": "larch-5", "codex": "kite-6-codex", "b10x": "plover-2"}[adapter]
    yield own(
        "session.started",
        f'"adapter":"{adapter}","adapter_class":"{"direct_provider" if adapter == "b10x" else "harness"}",'
        f'"harness_version":"1.{number % 40}.0","session_id":null,"model":null,"permission_mode":null,'
        f'"credential_source":null,"output_style":null,"cwd":"/scratch/{task}",{UNKNOWN_LISTS},'
        f'"inputs_digest":"{v.hex(64)}","transcript":{{"path":null,"digest":null,"bytes":null}},"hermetic":{HERMETIC}',
    )
    total = [0, 0, 0, 0]
    context = v.between(9_000, 18_000)
    turn = 0
    while more():
        turn += 1
        if adapter == "claude":
            request = f'"req_{v.hex(20)}"'
            parts = (v.between(2, 14), context, v.between(0, 3_000), v.between(1, 24))
            context = 20_000 if context > 170_000 else context + parts[2]
            total = [a + b for a, b in zip(total, parts, strict=True)]
            said = usage(request, f'"{model}"', parts)
            if v.chance() < 0.5:
                yield vendor("thinking", f'"text":"{v.text()}","request_id":{request}')
                yield vendor("usage", said)
            yield vendor("text", f'"text":"{v.bit()}","request_id":{request}')
            yield vendor("usage", said)
            calls = []
            for _ in range(v.between(1, 2)):
                call, tool = f"toolu_{v.hex(16)}", v.pick(TOOLS)
                given = (
                    f'{{"command":"{v.bit()}"}}'
                    if tool == "Bash"
                    else f'{{"file_path":"src/{task}/part_{v.between(0, 40)}.py","text":"{v.bit()}"}}'
                )
                calls.append(call)
                yield requested(call, tool, given, "hook")
                yield vendor("usage", said)
            for call in calls:
                yield decided(call)
                yield result(call, "true" if v.chance() < 0.07 else "false", v.text())
            if turn % 16 == 5:
                resets = (v.now // 18_000_000 + 1) * 18_000
                yield own(
                    "rate_limit",
                    f'"info":{{"status":"allowed","window":"five_hour","resets_at":{resets},'
                    f'"utilization":{v.between(0, 100) / 100},"using_overage":false}}',
                )
        elif adapter == "codex":
            yield vendor("turn.started", f'"turn":{turn},"frame_digest":null')
            said = f'"text":"{v.bit()}","request_id":null'
            yield vendor("text", said)
            yield vendor("text", said)
            for _ in range(v.between(1, 3)):
                given, shown, call = f'{{"command":"{v.bit()}"}}', f"exec-{v.hex(12)}", f"call_{v.hex(16)}"
                yield requested(shown, "Bash", given, "hook")
                yield decided(shown)
                yield requested(call, "exec", given, "none")
                yield result(call, "null", v.text())
            total = [a + b for a, b in zip(total, (v.between(900, 9_000), 400, 0, v.between(20, 900)), strict=True)]
            yield vendor("usage", usage("null", "null", tuple(total)))
            yield vendor("turn.ended", f'"turn":{turn},"stop_reason":null')
        else:
            yield own("turn.started", f'"turn":{turn},"frame_digest":null')
            yield own("thinking", f'"text":"{v.text()}","request_id":null')
            for _ in range(v.between(1, 4)):
                yield own("text", f'"text":"{v.bit()}","request_id":null')
            call = f"k{v.hex(10)}"
            given = f'{{"path":"part_{v.between(0, 40)}.md","text":"{v.text()}"}}'
            yield requested(call, v.pick(("file_edit", "file_read", "run")), given, "none")
            yield result(call, "false", "")
            parts = (v.between(300, 5_000), 100, 0, v.between(10, 500))
            yield own("usage", usage("null", f'"{model}"', parts))
    told = "null" if adapter == "b10x" else f"{{{usage('', '', tuple(total)).split('{', 1)[1]}"
    yield vendor(
        "session.ended",
        f'"final_answer":null,"observed_models":null,"is_error":false,"subtype":"success","stop_reason":null,'
        f'"terminal_reason":"completed",{UNSAID},"total_cost_usd":null,"permission_denials":null,'
        f'"subagents_spawned":null,"usage":{told},"model_usage":null,"census":{{"allowed":{census["allow"]},'
        f'"denied":{census["deny"]},"replaced":0,"abstained":0,"by_seam":{{"hook":{sum(census.values())}}},'
        f'"by_decider":{{"embedder":{sum(census.values())}}}}}',
    )
    yield own(
        "stream.closed",
        f'"process":{{"kind":"exited","code":0}},"events":{seq},"reason":"completed","run_id":"{name}"',
    )
