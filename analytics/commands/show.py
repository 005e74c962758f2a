"""`runlake show RUN`: one run as a person reads it, from its first line to where it ends or was cut."""
# ruff: noqa: PLC0415

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from analytics.commands.options import (
    FormatOption,
    FormulasOption,
    LakeOption,
    OutOption,
    Output,
    VersionOption,
    emit,
    hang_up,
    opened,
)
from analytics.errors import UsageError

if TYPE_CHECKING:
    from analytics.api import Lake

PIPE_CHARS = 400

# rows of one position are one step: a model's answer has its text in transcript and its figures in events
_STEPS = (
    """SELECT position, ts, kind, event, tool, call_id, model, decision, decided_by, status, is_error, exit_code,
        reason, duration_ms, text
    FROM transcript ORDER BY position""",
    """SELECT position, ts, kind, event, model, usage_scope, input_tokens, cache_read_tokens, output_tokens, cost_usd,
        limit_id, limit_used, limit_unit, limit_resets_at, limit_status
    FROM events WHERE kind IN ('usage', 'rate_limit') AND is_shadow IS NOT TRUE ORDER BY position""",
    """SELECT coalesce(p.piece, 0) * 1000000000000000 + r.line * 1000000 + r.part AS position, 'refused' AS kind,
        'line ' || r.line AS event, r.reason AS status, r.detail AS reason
    FROM refusals AS r LEFT JOIN run_pieces AS p USING (source_id, run_id)
    WHERE r.run_id = getvariable('only_run') AND r.line IS NOT NULL ORDER BY position""",
)


def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run's id, or a beginning of it that no other run has.")
    ],
    full: Annotated[  # noqa: FBT002
        bool, typer.Option("--full", help="Whole texts, however long, instead of their beginnings.")
    ] = False,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """A readable timeline of one run: said, called, decided, used, refused, and where it was cut.

    Data formats have the rows of the relation transcript.
    """
    output = Output(format_, out, formulas)
    with opened(lake, at) as source:
        run = _resolved(source, run)
        if output.chosen != "table":
            emit(source.show(run), output)
            return
        from analytics.export import sink, terminal

        try:
            with sink(out) as to:
                width, _ = terminal(to)
                _print(source, run, to, None if full else (width or PIPE_CHARS))
        except BrokenPipeError:
            raise hang_up() from None


def _resolved(lake: Lake, given: str) -> str:
    """The run that is meant: its id, or the one run whose id begins so."""
    from analytics.sqlfiles import quoted

    literal = quoted(given)
    query = (
        f"SELECT run_id FROM runs WHERE run_id = {literal} OR starts_with(run_id, {literal}) ORDER BY run_id LIMIT 20"
    )
    found = [row[0] for row in lake.sql(query).fetchall()]
    if given in found:
        return given
    if len(found) == 1:
        return str(found[0])
    if found:
        raise UsageError(f"Several runs begin with {given!r}: {', '.join(map(repr, found))}. Give more of the id.")
    known = [
        row[0] for row in lake.sql("SELECT run_id FROM runs ORDER BY started_at DESC NULLS LAST LIMIT 10000").fetchall()
    ]
    from difflib import get_close_matches

    near = get_close_matches(given, known, n=3, cutoff=0.4)
    guess = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UsageError(f"There is no run {given!r}. {guess}`runlake runs` lists them.")


def _print(lake: Lake, run: str, to: IO[bytes], width: int | None) -> None:
    def line(text: str) -> None:
        to.write((_cut(text, width) + "\n").encode("utf-8", "backslashreplace"))

    metrics = lake.runs(run=run).to_arrow_table().to_pylist()[0]
    for text in _head(metrics):
        line(text)
    line("")
    start: datetime | None = None
    for step in _steps(lake, run):
        start = start or step["ts"]
        line(f"{_offset(step['ts'], start):>10}  {step['kind']:<14}  {_detail(step)}")
    line("")
    line(_end(metrics))


def _steps(lake: Lake, run: str) -> Iterator[dict[str, Any]]:
    """The steps in order; what no query said of a step is None."""
    streams = (_rows(lake, query, run) for query in _STEPS)
    merged = heapq.merge(*streams, key=itemgetter("position"))
    for _, rows in groupby(merged, key=itemgetter("position")):
        step: defaultdict[str, Any] = defaultdict(lambda: None)
        for row in rows:
            step.update((name, value) for name, value in row.items() if value is not None)
        yield step


def _rows(lake: Lake, query: str, run: str) -> Iterator[dict[str, Any]]:
    for batch in lake.sql(query, run=run).to_arrow_reader(4096):
        yield from batch.to_pylist()


def _head(m: dict[str, Any]) -> Iterator[str]:
    from analytics.render import UNKNOWN, dollars, duration, moment, visible
    from analytics.values import iso

    def time(value: datetime | None) -> str:
        return UNKNOWN if value is None else moment(iso(value))

    def count(name: str, flag: str) -> str:
        value = m[name]
        return UNKNOWN if value is None else f"{'≥ ' if m[flag] else ''}{value:,}"

    yield f"run      {visible(m['run_id'])}"
    setting = [m["wire"], m["adapter"], m["task"], m["variant"]]
    said = [visible(word) for word in setting if word] + (
        [f"repetition {m['repetition']}"] if m["repetition"] is not None else []
    )
    yield f"of       {', '.join(said)}"
    lasted = UNKNOWN if m["duration_ms"] is None else duration(m["duration_ms"])
    yield f"time     {time(m['started_at'])} to {time(m['ended_at'])}, {lasted}"
    why = visible(m["completeness_reason"] or UNKNOWN)
    yield f"outcome  {visible(m['outcome'] or UNKNOWN)}; {m['completeness']}: {why}"
    tokens = [f"{count(f'{side}_tokens', 'tokens_are_lower_bound')} {side}" for side in ("input", "output")]
    cost = UNKNOWN if m["cost_usd"] is None else dollars(m["cost_usd"])
    yield f"tokens   {', '.join(tokens)}; cost {cost}"
    open_ = UNKNOWN if m["tool_calls_unfinished"] is None else f"{m['tool_calls_unfinished']:,}"
    open_ += " unfinished" if m["unfinished_is_exact"] is not False else " open so far"
    yield f"calls    {m['tool_calls']:,}, {count('denied_calls', 'denials_are_lower_bound')} denied, {open_}"
    if m["refused_lines"]:
        yield f"refused  {m['refused_lines']:,} {'line' if m['refused_lines'] == 1 else 'lines'}"


def _end(m: dict[str, Any]) -> str:
    """The last line says whether this is all there was."""
    from analytics.render import visible

    why = visible(m["completeness_reason"] or "")
    return {
        "closed": f"── the run ended here ({why})",
        "open": f"── no end yet ({why}): the run may go on",
        "truncated": f"── cut here ({why}): what followed is not known",
        "inconsistent": f"── the end does not fit what was read ({why})",
    }.get(m["completeness"], f"── the last line; whether the run ended cannot be known ({why})")


def _offset(ts: datetime | None, start: datetime | None) -> str:
    if ts is None or start is None:
        return ""
    seconds = (ts - start).total_seconds()
    if abs(seconds) < 600:
        return f"{seconds:+.2f} s"
    minutes = int(seconds / 60)
    return f"{minutes:+d} m {int(abs(seconds) - abs(minutes) * 60):02d} s"


def _detail(row: dict[str, Any]) -> str:
    """What a step says, the most telling first."""
    from analytics.render import dollars, duration, moment, number, visible
    from analytics.values import iso

    parts: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("{}", row["event"] if row["kind"] == "refused" else None, str), ("{}", row["tool"], visible),
        ("[{}]", row["call_id"], visible), ("{}", row["model"], visible), ("{}", row["decision"], visible),
        ("by {}", row["decided_by"], visible), ("{}", row["limit_id"], visible), ("{}", _share(row), str),
        ("{}", row["limit_status"], visible), ("resets {}", row["limit_resets_at"], lambda time: moment(iso(time))),
        ("{}", row["status"], visible), ("exit {}", row["exit_code"], str),
        ("{}", "failed" if row["is_error"] else None, str), ("{}", row["usage_scope"], visible),
        ("in {}", row["input_tokens"], number), ("cached {}", row["cache_read_tokens"], number),
        ("out {}", row["output_tokens"], number), ("{}", row["cost_usd"], dollars),
        ("{}", row["duration_ms"], duration), ("{}", row["reason"], visible), ("{}", row["text"], visible),
    ]  # fmt: skip
    said = "  ".join(form.format(show_(value)) for form, value, show_ in parts if value is not None)
    return said or visible(row["event"] or "")


def _share(row: dict[str, Any]) -> str | None:
    from analytics.render import number

    used = row["limit_used"]
    if used is None:
        return None
    return f"{number(used * 100 if row['limit_unit'] == 'fraction' else used)} %"


def _cut(text: str, width: int | None) -> str:
    from analytics.render import cut

    return text if width is None else cut(text, width)
