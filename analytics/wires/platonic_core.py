"""platonic-core ledgers: bare events, records, and host ledger lines v 1 and 2.

The crate replays a strict state machine and stops at the first bad record. The same machine is replayed here, but it
goes on: a line that breaks a rule is refused by the rule's name and leaves the state as it was. The schema is in
`platonic_core_lines`, the machine's memory in `platonic_core_state`, its rules and the rows in `platonic_core_rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from analytics.wires.base import MAX_INT, Context, Refusal, Rows, Sample, Wire
from analytics.wires.platonic_core_lines import KNOWN_EVENTS, LINES, NESTINGS, is_blank, nesting
from analytics.wires.platonic_core_rows import Replay
from analytics.wires.platonic_core_state import State

OUT_OF_RANGE = ("Expected `int` >=", "Expected `int` <=", "Expected `int`, got `float`", "Number out of range")


def _event_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The bare event inside any nesting, as far as there is one."""
    record = obj.get("record", obj)
    event = record.get("event") if isinstance(record, dict) else None
    return event if isinstance(event, dict) else obj


def _stated(obj: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The run id and the sequence number that a refused line itself names."""
    run_id, record = _event_of(obj).get("run_id"), obj.get("record", obj)
    seq = record.get("seq") if isinstance(record, dict) else None
    has_seq = type(seq) is int and 0 <= seq <= MAX_INT
    return run_id if isinstance(run_id, str) and not is_blank(run_id) else None, seq if has_seq else None


class PlatonicCore:
    """The wire; see the module."""

    name = "platonic-core"
    summary = "platonic-core runs: bare events, records and host ledger lines v 1 and 2"
    secret_exempt_keys = frozenset(
        (
            "token_budget",
            "estimated_tokens",
            "estimated_tokens_before",
            "estimated_tokens_after",
            "input_tokens",
            "output_tokens",
        )
    )

    def __init__(self) -> None:
        self._decoders = {shape: msgspec.json.Decoder(line) for shape, line in LINES.items()}
        self._state = msgspec.json.Decoder(State)

    def sniff(self, sample: Sample) -> str | None:
        """The nesting that most of the sample's objects have: a damaged first line must not decide for the file."""
        seen = Counter(shape for obj in sample.objects if (shape := self._shape(obj)) is not None)
        return seen.most_common(1)[0][0] if seen else None

    def _shape(self, obj: Mapping[str, Any]) -> str | None:
        shape = nesting(obj)
        if shape == "ledger":
            record = obj.get("record")
            is_ours = self._is_record(record) if "v" in obj else isinstance(obj.get("voice_events"), list)
        elif shape == "record":
            is_ours = self._is_record(obj)
        else:
            is_ours = isinstance(obj.get("run_id"), str) and str(obj.get("event")) in KNOWN_EVENTS and "seq" not in obj
        return shape if is_ours else None

    @staticmethod
    def _is_record(obj: Any) -> bool:
        return isinstance(obj, dict) and "seq" in obj and "occurred_at_ms" in obj and isinstance(obj.get("event"), dict)

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        """Of one line in the nesting `shape`."""
        return self._decoders[shape]

    def new_state(self, shape: str) -> State:
        """A run that has not started."""
        return State()

    def load_state(self, shape: str, text: str) -> State:
        """The state as it stood at the end of what was read before."""
        return self._state.decode(text)

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        """The nesting and the version come first, then the event's name, then what msgspec found."""
        run_id, seq = _stated(obj)
        found, name = nesting(obj), _event_of(obj).get("event")
        if found != ctx.shape:
            is_what = NESTINGS[found] if found else "no event"
            return Refusal("not_a_record", f"{is_what} where the file has {NESTINGS[ctx.shape]}", run_id, seq)
        if (
            found == "ledger"
            and "voice_events" not in obj
            and (type(obj.get("v")) is not int or obj["v"] not in (1, 2))
        ):
            return Refusal("unknown_format", f"v is {obj['v']!r}" if "v" in obj else "no v", run_id, seq)
        inner = nesting(obj["record"]) if isinstance(obj.get("record"), dict) else None
        if inner in {"event", "ledger"}:
            return Refusal("not_a_record", f"{NESTINGS[inner]} inside a ledger line", run_id, seq)
        if isinstance(name, str) and name not in KNOWN_EVENTS:
            return Refusal("unknown_event", name, run_id, seq)
        reason = "number_out_of_range" if error.startswith(OUT_OF_RANGE) else "malformed"
        if error.startswith("Object contains unknown field"):
            reason = "unknown_field"
        return Refusal(reason, f"{name}: {error}" if isinstance(name, str) else error, run_id, seq)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> None:
        """Plain text is never data here."""

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        """Replays the lines; ctx.state stands behind the last one afterwards."""
        return Replay(ctx.state, len(objs)).run(objs, ctx.shape)

    def is_final_without_newline(self, shape: str) -> bool:
        """The newline is the commit marker: a last line without it does not count, however whole it looks."""
        return False

    def needs_newline(self, shape: str) -> bool:
        """Not even where nothing can follow."""
        return True


WIRE: Wire = PlatonicCore()
