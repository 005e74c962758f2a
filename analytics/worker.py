"""The function that a local process, a pool or another engine runs: a list of files to Parquet files and file records.

It opens sources, sniffs them, and has their lines decoded, redacted and written; the files stand in the lake when it
returns, but nothing reads them before the driver commits.
"""

from __future__ import annotations

import gc
import hashlib
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from analytics import reading, wires
from analytics.blocks import Decoded, LineDecoder, Payload, Refused
from analytics.feeding import Advance, Block, Span
from analytics.lines import Lines
from analytics.places import place
from analytics.redact import Redactor
from analytics.tally import HELD_BYTES, Piece, Tally
from analytics.tasks import FileRecord, ReadTask, Result, Settings
from analytics.wires.base import Context, DocumentError, Refusal, Sample
from analytics.wires.lookalikes import RESEMBLED, lookalike
from analytics.writing import Writers

READ_ERROR = reading.SourceDefect.reason
NEVER = -1
CARRIED = ("event_lines", "events", "refused_lines", "blank_lines", "redactions", "has_bom", "began_at")


def work(tasks: list[ReadTask], settings: Settings, number: int, advance: Advance) -> Result:
    """Read the files; `advance` is told bytes and lines read. Raises OSError only for the lake, never for a source."""
    was_enabled = gc.isenabled()
    gc.disable()  # millions of short-lived objects without cycles
    try:
        worker = Worker(settings, number, advance)
        try:
            return worker.run(tasks)
        except OSError:
            worker.writers.abandon()
            raise
    finally:
        if was_enabled:
            gc.enable()


class Worker:
    """The state of one `work` call."""

    def __init__(self, settings: Settings, number: int, advance: Advance) -> None:
        self.settings, self.advance = settings, advance
        self.writers = Writers(place(settings.lake), settings.ingest_id, number, settings.attempt)
        self.redactor = Redactor(frozenset()) if settings.redact else None
        self.block = Block(self.writers, advance, settings.max_line_bytes, self.redactor)
        self.decoders: dict[tuple[str, str], LineDecoder] = {}

    def run(self, tasks: list[ReadTask]) -> Result:
        """All tasks in order."""
        records: list[FileRecord] = []
        tallies: list[tuple[FileRecord, Tally]] = []
        for task in tasks:
            record = FileRecord(task.path, task.source_id)
            records.append(record)
            tally = self.source(task, record)
            if tally is not None:
                tallies.append((record, tally))
        self.block.flush()
        for record, tally in tallies:
            for refusal in tally.refusals:
                name = refusal["reason"]
                record.refusals_by_reason[name] = record.refusals_by_reason.get(name, 0) + 1
            record.row.update(tally.row())
            self.writers.refusals(tally.wire, tally.refusals)
        return Result(self.writers.close(), records)

    def display(self, path: str) -> str:
        """The path as refusals show it."""
        text = display(path)
        return self.redactor.json_line(text)[0] if self.redactor is not None else text

    def line_decoder(self, wire: str, shape: str) -> LineDecoder:
        """One decoder per wire and shape."""
        key = (wire, shape)
        if key not in self.decoders:
            made = wires.wire(wire)
            redactor = Redactor(made.secret_exempt_keys) if self.settings.redact else None
            self.decoders[key] = LineDecoder(made, shape, made.decoder(shape), redactor, self.settings.max_line_bytes)
        return self.decoders[key]

    def source(self, task: ReadTask, record: FileRecord) -> Tally | None:
        """Read one source into the block (and through it)."""
        try:
            opened = reading.open_source(task.path, max_ratio=self.settings.max_ratio)
        except OSError as error:
            record.status, record.reason = "unreadable", f"cannot be opened: {error.strerror or error}"
            return None
        record.row = {
            "size_bytes": opened.size_bytes, "mtime_ns": opened.mtime_ns, "inode": opened.inode,
            "compression": opened.compression,
        }  # fmt: skip
        try:
            if task.prior is not None:
                tally: Tally | None = self.read_on(task.prior, task, opened, record)
            else:
                tally = self.read_whole(task, opened, record)
        except reading.SourceDefect as error:  # before anything of it was taken
            record.status, record.reason = "unreadable", f"cannot be read: {error}"
            return None
        finally:
            opened.close()
        failed = [refusal for refusal in tally.refusals if refusal["reason"] == READ_ERROR] if tally is not None else []
        if failed:
            record.status, record.reason = "refused", f"cannot be read to its end: {failed[0]['detail']}"
            record.row["mtime_ns"] = NEVER  # so that the next ingest takes it for changed
        return tally

    def read_on(self, prior: dict[str, Any], task: ReadTask, opened: reading.Opened, record: FileRecord) -> Tally:
        """Go on behind the prior offset.

        If the bytes before it are no longer those that the plan saw, the next ingest must plan anew: a copy of what
        stood there may have to be read instead.
        """
        offset, hasher = int(prior["bytes_read"]), xxhash.xxh3_128()
        view, left = memoryview(bytearray(1 << 20)), offset
        while left:
            got = opened.stream.readinto(view[: min(left, len(view))])
            if not got:
                break
            hasher.update(view[:got])
            left -= got
        if left or hasher.hexdigest() != prior["digest"]:
            raise reading.SourceDefect("it was rewritten while the ingest ran; the next one reads it anew")
        wire, shape = prior["wire"], prior["shape"]
        record.went_on, record.wire = True, wire
        decoder = self.line_decoder(wire, shape)
        saved = msgspec.json.decode(prior["resume_state"], type=dict[str, msgspec.Raw])
        state = decoder.wire.load_state(shape, bytes(saved["wire"]).decode())
        newest = msgspec.json.decode(saved["newest_seq"])
        tally = Tally(task.source_id, self.display(task.path), wire, shape, Context(task.source_id, shape, state))
        tally.line, tally.offset, tally.hasher = prior["lines"] - (prior["pending_bytes"] > 0), offset, hasher
        for name in CARRIED:
            setattr(tally, name, prior[name])
        tally.is_inside_key = "is_inside_key" in saved
        tally.redactions -= msgspec.json.decode(saved["tail_redactions"])
        tally.refusal_count = prior["refusals"]
        tally.blanks = [(blank["line"], blank["text"]) for blank in prior["blanks"] or ()]
        for piece in prior["runs"] or ():
            tally.pieces[piece["run_id"]] = Piece(**piece, newest_seq=newest.get(piece["run_id"]))
        self.block.take(opened, tally, decoder)
        return tally

    def read_whole(self, task: ReadTask, opened: reading.Opened, record: FileRecord) -> Tally | None:
        """Sniff the source and read it from its beginning."""
        block = self.block
        try:
            filled = block.begin(opened.stream)
        except reading.SourceDefect as error:
            if error.reason == READ_ERROR:
                raise
            return self.refuse_file(task, opened, record, b"", error.reason, str(error))
        size = filled - block.fill
        if reading.BOM[:-1].startswith(block.buffer[block.fill : min(filled, block.fill + len(reading.BOM))]):
            record.status, record.reason = "skipped", "empty"  # or so far no more than a part of the mark
            return None
        if reading.looks_like_utf16(bytes(block.buffer[block.fill : min(filled, block.fill + 512)])):
            head = bytes(block.buffer[block.fill : filled])
            return self.refuse_file(task, opened, record, head, "not_utf8_file", "UTF-16 or UTF-32, not UTF-8")
        is_whole = size < reading.HEAD_BYTES
        sample = reading.take_sample(block.buffer, block.fill, filled, whole=is_whole)
        known = self.recognise(sample)
        if known is None and lookalike(sample) is None:  # a long first line, or much that is none of a wire's
            if not is_whole:
                filled = block.more(opened.stream, filled)
                is_whole = filled < block.size
            sample = reading.take_sample(block.buffer, block.fill, filled, whole=is_whole, objects=reading.MANY_OBJECTS)
            known = self.recognise(sample)
        agent = self.other_agent(sample, known)
        if agent is not None:
            head, detail = bytes(block.buffer[block.fill : filled]), f"a transcript of {agent}"
            return self.refuse_file(task, opened, record, head, "other_agent", detail)
        if known is None:
            record.status, record.reason = "skipped", "no known wire by its content"
            return None
        wire, shape = known
        record.wire = wire
        decoder = self.line_decoder(wire, shape)
        ctx = Context(task.source_id, shape, decoder.wire.new_state(shape))
        tally = Tally(task.source_id, self.display(task.path), wire, shape, ctx)
        if shape in wires.BY_NAME[wire].documents:
            self.document(opened, record, tally, decoder, bytes(block.buffer[block.fill : filled]))
            return tally
        if block.buffer.startswith(reading.BOM, block.fill, filled):
            tally.has_bom, tally.offset = True, len(reading.BOM)
            tally.hasher.update(reading.BOM)
            filled = block.cut_beginning(len(reading.BOM), filled)
        block.take(opened, tally, decoder, filled)
        return tally

    def recognise(self, sample: Sample) -> tuple[str, str] | None:
        """Wire and shape: by content, or the wire named by hand."""
        name = self.settings.wire
        if name is None:
            return wires.sniff(sample)
        return name, wires.wire(name).sniff(sample) or wires.BY_NAME[name].shapes[0]

    def other_agent(self, sample: Sample, known: tuple[str, str] | None) -> str | None:
        """The agent whose transcript this is, where no wire of ours is meant by it."""
        if self.settings.wire is not None or (known is not None and known[0] not in RESEMBLED):
            return None
        return lookalike(sample, is_known=known is not None)

    def refuse_file(self, task: ReadTask, opened: reading.Opened, record: FileRecord, head: bytes, reason: str,
                    detail: str) -> Tally:  # fmt: skip
        """The whole file is one refusal, with its bytes counted."""
        record.status, record.reason = "refused", detail
        tally = Tally(task.source_id, self.display(task.path), "unknown", "", Context(task.source_id, "", None))
        self.refuse_whole(opened if head else None, tally, head, reason, detail)
        return tally

    def refuse_whole(self, opened: reading.Opened | None, tally: Tally, begun: bytes, reason: str, detail: str) -> None:
        """One refusal for all bytes of a file: those that were read, and what else `opened` has; its first are kept."""
        digest, size, kept = hashlib.sha256(begun), len(begun), begun[:HELD_BYTES]
        tally.hasher.update(begun)
        view = memoryview(bytearray(1 << 20))
        while opened is not None:
            try:
                got = opened.stream.readinto(view)
            except reading.SourceDefect as error:
                if error.reason == READ_ERROR:
                    raise
                detail = f"{detail}; behind byte {size} it is broken: {error}"
                break
            if not got:
                break
            digest.update(view[:got])
            tally.hasher.update(view[:got])
            size += got
            kept += bytes(view[: min(got, HELD_BYTES - len(kept))])
        tally.offset = size
        tally.refuse(reason, detail, line=None, offset=0, data=kept, size=size, digest=digest.hexdigest(),
                     redactor=self.redactor)  # fmt: skip

    def document(
        self, opened: reading.Opened, record: FileRecord, tally: Tally, decoder: LineDecoder, head: bytes
    ) -> None:
        """A single JSON document with its events inline; it is held in memory as a whole."""
        self.block.flush()
        limit = self.settings.max_document_bytes
        whole, broken = reading.read_up_to(opened.stream, max(limit + 1 - len(head), 0), head)
        self.advance(len(whole), 0)
        shift = len(reading.BOM) if whole.startswith(reading.BOM) else 0
        problem, detail, elements = "", "", []
        if len(whole) > limit:
            problem, detail = "document_too_large", f"more than {limit} bytes"
        elif broken is not None:
            problem, detail = broken.reason, str(broken)
        else:
            data = whole[shift:]
            try:
                data.decode()
                elements = decoder.wire.document(data, tally.ctx)  # type: ignore[attr-defined]
            except (DocumentError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                problem, detail = "document_malformed", str(error)
        if problem:
            self.refuse_whole(opened if broken is None else None, tally, whole, problem, detail)
            record.status, record.reason = "refused", tally.refusals[-1]["detail"]
            return
        tally.hasher.update(whole)
        tally.offset, tally.has_bom = len(whole), shift > 0
        between, at = [], 0
        for element in elements:
            between.append(data[at : element.offset])
            at = element.offset + element.length
        skeleton, count = b"\0".join([*between, data[at:]]), 0
        if self.redactor:
            skeleton, count = self.redactor.text(skeleton)
        tally.redactions += count
        tally.skeleton = skeleton.decode("utf-8", "replace")
        tally.line = len(elements)
        texts = [data[e.offset : e.offset + e.length] for e in elements]
        payload = Payload(pa.array(texts, pa.binary()).view(pa.string()).cast(pa.string_view()))
        good = [j for j, e in enumerate(elements) if not isinstance(e.obj, Refusal)]
        decoded = Decoded(
            np.array(good, np.int64), [elements[j].obj for j in good], payload,
            [Refused(j, e.obj, texts[j]) for j, e in enumerate(elements) if isinstance(e.obj, Refusal)],
        )  # fmt: skip
        run_ids = [o.run_id for o in decoded.objects]
        decoder.redact(decoded)
        for o, run_id in zip(decoded.objects, run_ids, strict=True):
            # an element does not name its run: decoded anew it lost it, and the document's own name is redacted here
            o.run_id = self.redactor.text(run_id.encode())[0].decode() if self.redactor and run_id else run_id
        offsets = np.array([e.offset + shift for e in elements], np.int64)
        self.block.emit(decoder, Lines.of(texts), decoded, [Span(tally, 1, 0, len(elements))], offsets)
        tally.ctx.state = decoder.wire.new_state(decoder.shape)  # a document is never read on, and this names its runs


def display(path: str) -> str:
    """A path as text; bytes that are not UTF-8 are shown escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
