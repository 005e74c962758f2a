"""The eight forms of lines that bad input is tried on: a small good stream of each, with holes for what is bad."""

from __future__ import annotations

from dataclasses import dataclass, field

TIME = b'"2026-03-01T10:00:00Z"'
AT_MS = b"1772359200000"
DEFAULTS = {b"@TEXT@": b'"a"', b"@COUNT@": b"7", b"@EXTRA@": b""}


@dataclass(frozen=True)
class Host:
    """A stream: `before`, one line out of `text` or `count`, then `after`.

    Holes: @RUN@, @TEXT@ (a JSON string), @COUNT@ (an input counter), @TIME@, @EXTRA@ (more members), @N@ (the next
    sequence number, which a refused line does not take).
    """

    wire: str
    shape: str
    before: tuple[bytes, ...]
    text: bytes
    count: bytes
    after: bytes
    text_event: str
    count_event: str
    time: bytes = TIME
    first: int = 0
    is_final_unterminated: bool = False
    needs_newline: bool = False
    fields: dict[str, bytes] = field(default_factory=dict)

    def fill(self, template: bytes, run: str, number: int = 0, **holes: bytes) -> bytes:
        """The template with its holes filled."""
        values = {b"@RUN@": run.encode(), b"@TIME@": self.time, b"@N@": b"%d" % number, **DEFAULTS}
        values |= {b"@%s@" % name.upper().encode(): value for name, value in holes.items()}
        for hole, value in values.items():
            template = template.replace(hole, value)
        return template

    def line(self, run: str, kind: str = "text", **holes: bytes) -> bytes:
        """The line under test, without its newline."""
        return self.fill(getattr(self, kind), run, self.first + len(self.before), **holes)

    def stream(self, run: str, middle: bytes, *, is_event: bool, end: bytes = b"\n") -> list[bytes]:
        """Lines with their ends: good ones, the one under test, a good one."""
        n = self.first + len(self.before)
        begin = [self.fill(template, run, self.first + i) for i, template in enumerate(self.before)]
        return [line + end for line in [*begin, middle, self.fill(self.after, run, n + is_event)]]

    def good(self, run: str, end: bytes = b"\n") -> list[bytes]:
        """A stream without a fault."""
        return self.stream(run, self.line(run), is_event=True, end=end)


_MH = b'{"format":"metaharness.event/1","seq":@N@,"run":"@RUN@","at":@TIME@,'
_MH_START = (
    b'"event":"session.started","adapter":"claude","adapter_class":"harness","model":"m","hermetic":{},"transcript":{}}'
)
_PC = b'{"seq":@N@,"occurred_at_ms":@TIME@,"event":{"run_id":"@RUN@",'
_PC_SAID = (
    _PC + b'"event":"model_responded","turn_id":"t1","step":0,"output":{"role":"assistant","content":@TEXT@},'
    b'"proposed_calls":[],"usage":{"input_tokens":@COUNT@,"output_tokens":5}@EXTRA@}}'
)
_HL = b'{"event_id":"evt_@N@","run_id":"@RUN@","sequence":@N@,"timestamp":@TIME@,"source":"generic",'
_CC = b'{"type":"assistant","uuid":"@RUN@-@N@","parentUuid":null,"sessionId":"@RUN@","timestamp":@TIME@,'
_CC_USER = b'{"type":"user","uuid":"@RUN@-@N@","parentUuid":null,"sessionId":"@RUN@","timestamp":@TIME@,'
_MESSAGE = (
    b'"message":{"id":"msg_@RUN@_@N@","role":"assistant","model":"m","content":[{"type":"text","text":@TEXT@}],'
    b'"stop_reason":"end_turn","usage":{"input_tokens":@COUNT@,"output_tokens":5}}@EXTRA@}'
)
_CS = b'{"type":"assistant","session_id":"@RUN@","uuid":"@RUN@-@N@","parent_tool_use_id":null,"timestamp":@TIME@,'
_CS_INIT = (
    b'{"type":"system","subtype":"init","session_id":"@RUN@","uuid":"@RUN@-@N@","cwd":"/yard","model":"m","tools":[],'
    b'"permissionMode":"default","apiKeySource":"none"}'
)
_CS_USER = (
    b'{"type":"user","session_id":"@RUN@","uuid":"@RUN@-@N@","parent_tool_use_id":null,'
    b'"message":{"role":"user","content":"more"}}'
)
_CR = b'{"timestamp":@TIME@,"type":"event_msg","payload":{'
_CR_COUNT = (
    _CR + b'"type":"token_count","info":{"total_token_usage":{"input_tokens":@COUNT@,"cached_input_tokens":0,'
    b'"output_tokens":5,"reasoning_output_tokens":0,"total_tokens":12},"last_token_usage":null},"rate_limits":null@EXTRA@}}'
)

HOSTS: dict[str, Host] = {
    "metaharness": Host(
        "metaharness", "events", (_MH + _MH_START,),
        _MH + b'"event":"text","text":@TEXT@,"request_id":null@EXTRA@}',
        _MH + b'"event":"usage","request_id":"q@N@","model":"m","usage":{"input_tokens":@COUNT@}@EXTRA@}',
        _MH + b'"event":"turn.ended","turn":1,"stop_reason":null}', "text", "usage", first=1,
    ),
    "platonic-core": Host(
        "platonic-core", "record",
        (
            _PC + b'"event":"run_started","agent_id":"plume"}}',
            _PC + b'"event":"context_built","turn_id":"t1","context":{"token_budget":9,"fragments":[]}}}',
            _PC + b'"event":"model_requested","turn_id":"t1","step":0,"model":"m"}}',
        ),
        _PC_SAID, _PC_SAID, _PC + b'"event":"run_failed","reason":"stopped"}}', "model_responded", "model_responded",
        time=AT_MS, needs_newline=True,
    ),
    "harness-lab": Host(
        "harness-lab", "events", (_HL + b'"kind":"run_started","payload":{"runner":"generic"}}',),
        _HL + b'"kind":"assistant_message","payload":{"text":@TEXT@}@EXTRA@}',
        _HL + b'"kind":"usage","payload":{"input_tokens":@COUNT@,"output_tokens":5}@EXTRA@}',
        _HL + b'"kind":"run_finished","payload":{"status":"completed"}}', "assistant_message", "usage",
    ),
    "generic stdout": Host(
        "harness-lab", "generic", (b'{"kind":"assistant_message","payload":{"text":"@RUN@"}}',),
        b'{"kind":"assistant_message","payload":{"text":@TEXT@}@EXTRA@}',
        b'{"kind":"usage","payload":{"input_tokens":@COUNT@,"output_tokens":5}@EXTRA@}',
        b'{"kind":"assistant_message","payload":{"text":"after"}}', "assistant_message", "usage",
        is_final_unterminated=True,
    ),
    "claude-stream": Host(
        "claude-stream", "stream", (_CS_INIT,), _CS + _MESSAGE, _CS + _MESSAGE, _CS_USER, "assistant", "assistant",
    ),
    "codex-exec": Host(
        "codex-exec", "items", (b'{"type":"thread.started","thread_id":"@RUN@"}', b'{"type":"turn.started"}'),
        b'{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":@TEXT@}@EXTRA@}',
        b'{"type":"turn.completed","usage":{"input_tokens":@COUNT@,"cached_input_tokens":0,"output_tokens":5}@EXTRA@}',
        b'{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"after"}}',
        "item.completed/agent_message", "turn.completed",
    ),
    "codex-rollout": Host(
        "codex-rollout", "rollout",
        (b'{"timestamp":@TIME@,"type":"session_meta","payload":{"id":"@RUN@","cwd":"/yard","cli_version":"0.99.0"}}',),
        _CR + b'"type":"agent_message","message":@TEXT@@EXTRA@}}', _CR_COUNT,
        _CR + b'"type":"agent_message","message":"after"}}', "event_msg/agent_message", "event_msg/token_count",
    ),
    "claude-code": Host(
        "claude-code", "session", (_CC_USER + b'"message":{"role":"user","content":"hello"}}',),
        _CC + _MESSAGE, _CC + _MESSAGE, _CC_USER + b'"message":{"role":"user","content":"more"}}',
        "assistant", "assistant",
    ),
}  # fmt: skip
