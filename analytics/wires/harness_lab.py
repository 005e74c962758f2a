"""Harness Lab: normalized events as JSONL, the document of `experiment export`, and raw generic stdout.

* "events": one normalized event per line, the run's id on it. Times end in Z or, where they went through an export,
  have no zone and are UTC.
* "export": one JSON document; the run's id stands on the run around its events.
* "generic": the stdout of an agent that speaks the generic protocol. No run id and no clock; a line that is no event
  is plain text and stays what it is, and a line that would kill upstream's reader costs only itself.
"""
# The methods of a wire are described once, in base.Wire.

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from analytics.wires.base import (
    Context,
    DocumentError,
    DocumentWire,
    Element,
    Refusal,
    Rows,
    Sample,
    micros,
    origin_of,
    times,
)
from analytics.wires.harness_lab_lines import (
    KINDS,
    Event,
    Export,
    ExportedRun,
    ExportEvent,
    GenericLine,
    Line,
    PlainText,
    Run,
    State,
    whole,
)
from analytics.wires.harness_lab_rows import Filler

EXPORT_VERSION = "2"
FATAL = frozenset({"malformed", "number_out_of_range", "line_too_long", "too_deep"})  # not plain text either
EXPORTED = msgspec.json.Decoder(ExportEvent)
GENERIC = msgspec.json.Decoder(GenericLine)
DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "events": msgspec.json.Decoder(Event),
    "export": EXPORTED,
    "generic": GENERIC,
}
EXPORT = msgspec.json.Decoder(Export)


class HarnessLab:
    """The wire; see the module."""

    name = "harness-lab"
    summary = "Harness Lab: normalized events (JSONL), the export document, generic stdout"
    secret_exempt_keys: frozenset[str] = frozenset()

    def sniff(self, sample: Sample) -> str | None:
        objects = sample.objects
        if sample.is_document and any("runs" in o and ("schema_version" in o or "experiment" in o) for o in objects):
            return "export"
        named = [o for o in objects if isinstance(kind := o.get("kind"), str) and kind in KINDS]
        normalized = sum("run_id" in o and "sequence" in o for o in named)
        generic = sum("run_id" not in o and "sequence" not in o for o in named)
        if normalized and normalized >= generic:
            return "events"
        return "generic" if generic else None

    def decoder(self, shape: str) -> msgspec.json.Decoder[Any]:
        return DECODERS[shape]

    def new_state(self, shape: str) -> State:
        return State()

    def load_state(self, shape: str, text: str) -> State:
        return msgspec.json.decode(text, type=State)

    def is_final_without_newline(self, shape: str) -> bool:
        return shape == "generic"

    def needs_newline(self, shape: str) -> bool:
        return False

    def explain(self, obj: Mapping[str, Any], error: str, ctx: Context) -> Refusal:
        kind, run_id, seq = obj.get("kind"), obj.get("run_id"), obj.get("sequence")
        reason = "malformed"
        if ctx.shape == "generic":
            run_id, seq = generic_run(ctx), None
            if kind not in KINDS if isinstance(kind, str) else not isinstance(kind, list | dict):
                reason, error = "unknown_event", "the line has no kind of the generic protocol"
        elif isinstance(kind, str) and kind not in KINDS:
            reason, error = "unknown_event", f"kind {kind!r:.80} is not known"
        if reason == "malformed" and ("out of range" in error or "`int` <=" in error or "`int` >=" in error):
            reason = "number_out_of_range"
        return Refusal(reason, error, run_id if isinstance(run_id, str) and run_id else None, whole(seq))

    def accept_text(self, line: bytes, refusal: Refusal, ctx: Context) -> GenericLine | PlainText | None:
        """Plain text is data in generic stdout. Upstream decodes with replacement and by Python's `json`, so a line
        whose only fault is a byte that is not UTF-8 is still the event that it is.
        """
        if ctx.shape != "generic" or refusal.reason in FATAL:
            return None
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if refusal.reason in ("invalid_utf8", "not_json") and text.lstrip().startswith("{"):
            try:
                obj = json.loads(text)
            except (ValueError, RecursionError):
                return PlainText(len(text))
            try:
                if obj.get("kind") in KINDS:
                    return GENERIC.decode(json.dumps(obj, ensure_ascii=False).encode("utf-8", "replace"))
            except (msgspec.DecodeError, TypeError):  # NaN, which Python reads and JSON does not have, kills its reader
                return None
        return PlainText(len(text))

    def read(self, objs: list[Any], ctx: Context) -> Rows:
        filler = Filler(len(objs), is_generic=ctx.shape == "generic")
        filler.columns["event"] = [o.kind for o in objs]
        filler.columns["call_id"] = [o.call_id for o in objs]
        if filler.is_generic:
            self.read_generic(filler, objs, ctx)
        else:
            self.read_events(filler, objs, ctx)
        return filler.rows

    def read_events(self, filler: Filler, objs: list[Event], ctx: Context) -> None:
        rows, runs = filler.rows, ctx.state.runs
        for i, o in enumerate(objs):
            run_id = o.run_id
            run = runs.get(run_id)
            is_new = run is None
            if run is None:
                run = Run()
            if filler.line(i, o, run, run_id, o.sequence):
                if o.kind == "run_finished":
                    runs.pop(run_id, None)
                elif is_new:
                    runs[run_id] = run
        run_ids = [o.run_id for o in objs]
        if run_ids and run_ids.count(run_ids[0]) == len(run_ids):
            rows.constants["run_id"] = run_ids[0]
        else:
            rows.columns["run_id"] = run_ids
        rows.columns["seq"] = [o.sequence for o in objs]
        rows.columns["parent_call_id"] = [o.parent_call_id for o in objs]
        rows.columns["ts"] = moments = clock([o.timestamp for o in objs])
        if moments.null_count:
            rows.columns["ts_origin"] = origin_of(moments, "harness")
        else:
            rows.constants["ts_origin"] = "harness"
        rows.constants["run_id_origin"] = "parent" if ctx.shape == "export" else "wire"

    def read_generic(self, filler: Filler, objs: Sequence[Line], ctx: Context) -> None:
        run_id = generic_run(ctx)
        run = ctx.state.runs.setdefault(run_id, Run())
        for i, o in enumerate(objs):
            filler.line(i, o, run, run_id, None)
        filler.rows.constants |= {"run_id": run_id, "run_id_origin": "source"}

    def document(self, data: bytes, ctx: Context) -> list[Element]:
        try:
            export = EXPORT.decode(data)
        except msgspec.MsgspecError as error:
            raise DocumentError(f"The export document does not fit its shape: {error}.") from error
        if export.schema_version not in (None, EXPORT_VERSION):
            said = f"{export.schema_version!r:.40}"
            raise DocumentError(f"The export document has schema_version {said}; only {EXPORT_VERSION!r} is known.")
        base = pa.py_buffer(data).address
        return [self.element(raw, base, run, ctx) for run in export.runs for raw in self.events(run, ctx)]

    def events(self, run: ExportedRun, ctx: Context) -> list[msgspec.Raw]:
        runner = run.reproducibility.runner if run.reproducibility else None
        if run.events and isinstance(runner, str):
            ctx.state.runs.setdefault(run.id, Run(runner=runner))
        return run.events or []

    def element(self, raw: msgspec.Raw, base: int, run: ExportedRun, ctx: Context) -> Element:
        place = pa.py_buffer(raw)
        obj: Any
        try:
            obj = EXPORTED.decode(raw)
            obj.run_id = run.id
        except msgspec.DecodeError as error:
            obj = self.refuse_element(raw, str(error), run, ctx)
        return Element(place.address - base, place.size, obj)

    def refuse_element(self, raw: msgspec.Raw, error: str, run: ExportedRun, ctx: Context) -> Refusal:
        try:
            obj = msgspec.json.decode(raw)
        except msgspec.DecodeError as fault:
            return Refusal("not_json", str(fault), run.id)
        if not isinstance(obj, dict):
            return Refusal("not_an_object", error, run.id)
        return self.explain(obj | {"run_id": run.id}, error, ctx)


def generic_run(ctx: Context) -> str:
    """Generic stdout names no run; the file is the run."""
    return f"generic-{ctx.source_id}"


def clock(texts: list[str | None]) -> pa.Int64Array:
    """UTC microseconds of timestamps with or without a zone; the shape of the first one decides the fast way."""
    first = next((text for text in texts if text), "")
    parsed = times(texts, assume_utc=not first.endswith("Z"))
    if parsed.null_count:
        both = zip(parsed.to_pylist(), texts, strict=True)
        parsed = pa.array((micros(text, assume_utc=True) if at is None else at for at, text in both), pa.int64())
    return parsed


WIRE: DocumentWire = HarnessLab()
