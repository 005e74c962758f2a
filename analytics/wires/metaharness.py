"""`metaharness.event/1`: one event per line, the payload flattened beside `format`, `seq`, `run`, `at`, `event`.

How usage, limits and denials must be read depends on the adapter that `session.started` names, so a small state per
run is carried along the file. Rules come from the wire's field notes: usage per adapter, b10x denials in warnings,
the hook's view of a Codex call and the second record of a Codex message as shadows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from analytics.wires import metaharness_lines as lines
from analytics.wires.base import MAX_INT, MAX_TOKENS, Context, Refusal, Rows, Sample, Wire, origin_of
from analytics.wires.metaharness_lines import EVENTS, KINDS
from analytics.wires.metaharness_rows import (
    CODES,
    EVENT_NAMES,
    KIND_NAMES,
    RETRY,
    UNKNOWN_SPEAKS,
    Filler,
    State,
    stretch,
    vendor_times,
)
from analytics.wires.metaharness_usage import Run

FORMAT = "metaharness.event/1"


class Metaharness:
    """The wire; stateless, all state is in the Context."""

    name = "metaharness"
    summary = "metaharness.event/1, all 20 events; adapters claude, codex, b10x"
    secret_exempt_keys = frozenset({"credential_source"})

    def sniff(self, sample: Sample) -> str | None:
        for obj in sample.objects:
            tag = obj.get("format")
            if isinstance(tag, str) and tag.startswith("metaharness.event/"):
                return "events"
        return None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        union: Any = None
        for cls in KINDS:
            union = cls if union is None else union | cls
        return msgspec.json.Decoder(union)

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return msgspec.json.decode(text, type=State)

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        run, seq = obj.get("run"), obj.get("seq")
        run_id = run if isinstance(run, str) else None
        seq = seq if isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq <= MAX_INT else None
        tag, event = obj.get("format"), obj.get("event")
        if tag != FORMAT:
            found = "has no format tag" if tag is None else f"carries format {str(tag)[:60]!r}"
            return Refusal("unknown_format", f"the line {found}, not {FORMAT!r}", run_id, seq)
        if not isinstance(event, str) or event not in EVENTS:
            found = "names no event" if event is None else f"names event {str(event)[:60]!r}"
            return Refusal("unknown_event", f"the line {found}, which is none of the 20", run_id, seq)
        is_number = any(f"`int` <= {limit}" in error for limit in (MAX_INT, MAX_TOKENS))
        reason = "number_out_of_range" if is_number else "malformed"
        return Refusal(reason, f"{event}: {error}", run_id, seq)

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> None:
        return None

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        runs: dict[str, Run] = ctx.state.runs
        filler = Filler(len(objs))
        rows = filler.rows
        classes = list(map(type, objs))
        run_ids = [o.run for o in objs]
        if run_ids and run_ids.count(run_ids[0]) == len(run_ids):
            rows.constants["run_id"] = run_ids[0]
        else:
            rows.columns["run_id"] = run_ids
        rows.columns["seq"] = [o.seq for o in objs]
        rows.constants["run_id_origin"] = "wire"
        codes = np.fromiter(map(CODES.__getitem__, classes), np.int32, len(objs))
        rows.columns["event"] = pa.DictionaryArray.from_arrays(pa.array(codes), EVENT_NAMES)
        retried = [i for i in np.flatnonzero(codes == CODES[lines.WarningEvent]) if objs[i].code == "VENDOR_API_RETRY"]
        kinds = codes.copy()
        kinds[retried] = RETRY
        rows.columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(kinds), KIND_NAMES)
        rows.columns["ts"] = stamps = vendor_times([o.at for o in objs])
        if stamps.null_count == 0:
            rows.constants["ts_origin"] = "vendor"
        else:
            rows.columns["ts_origin"] = origin_of(stamps, "vendor")
        # a session's start tells how to read what follows, so it begins a stretch
        begins = [i for i, cls in enumerate(classes) if cls is lines.SessionStarted or run_ids[i] != run_ids[i - 1]]
        cuts = [*sorted({0, *begins}), len(objs)] if objs else []
        for first, last in pairwise(cuts):
            name = run_ids[first]
            known = runs.get(name)
            run = runs[name] = Run() if known is None else known
            if known is None:
                filler.put(first, end_rule="counted")
                if classes[first] is not lines.SessionStarted:
                    filler.put(first, speaks=UNKNOWN_SPEAKS)
            stretch(filler, objs, classes, first, last, run)
        return rows

    def is_final_without_newline(self, shape: str) -> bool:
        return False

    def needs_newline(self, shape: str) -> bool:
        return False


WIRE: Wire = Metaharness()
