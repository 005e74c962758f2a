"""`runlake show RUN`: one run as a person reads it, from its first line to where it ends or was cut."""
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

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
MOST_STEPS = 1000


def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run's id, or a beginning of it that no other run has.")
    ],
    full: Annotated[  # noqa: FBT002
        bool, typer.Option("--full", help="Whole texts, however long, instead of their beginnings.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="STEPS", min=0, help="At most so many steps, first and last; 0: all.")
    ] = MOST_STEPS,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the timeline as one page instead.")
    ] = None,
    lake: LakeOption = None,
    at: VersionOption = None,
    format_: FormatOption = None,
    out: OutOption = None,
    formulas: FormulasOption = "escape",
) -> None:
    """A readable timeline of one run: said, called, decided, used, refused, and where it was cut.

    A silence is a minute or more without a record. Data formats have the rows of the relation transcript.
    """
    output = Output(format_, out, formulas)
    if html is not None and (format_ is not None or out is not None):
        raise UsageError("--html FILE says what is written and where: give it without --format and -o.")
    with opened(lake, at) as source:
        run = _resolved(source, run)
        if html is not None:
            from analytics.html.page import write_run

            write_run(source, run, html, limit=limit)
            return
        if output.chosen != "table":
            emit(source.show(run), output)
            return
        from analytics.export import sink, terminal

        try:
            with sink(out) as to:
                width, _ = terminal(to)
                _print(source, run, to, None if full else (width or PIPE_CHARS), limit)
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


def _print(lake: Lake, run: str, to: IO[bytes], width: int | None, limit: int) -> None:
    from analytics import timeline
    from analytics.render import duration, visible
    from analytics.sqlfiles import quoted

    def line(text: str) -> None:
        to.write((_cut(text, width) + "\n").encode("utf-8", "backslashreplace"))

    def tell(step: timeline.Step, turn: int) -> None:
        if step.silence_ms is not None:
            line(f"{'':>10}  … {duration(step.silence_ms)} of silence …")
        if step.turn is not None:
            line(f"{'':>10}  ── turn {turn}  {visible(step.turn)}")
        row = step.row
        said = "  ".join(part for part in (timeline.facts(row), visible(row["text"] or "")) if part)
        line(f"{timeline.offset(step.ms):>10}  {row['kind']:<14}  {said or visible(row['event'] or '')}")

    only = {} if lake.has_few_events or lake.is_kept("run_metrics") else {"run": run}
    metrics = lake.runs(where=f"run_id = {quoted(run)}", **only).to_arrow_table().to_pylist()[0]
    for label, text in timeline.head(metrics):
        line(f"{label:<7}  {text}")
    line("")
    turns = 0
    chars = None if width is None else 4 * width
    for _, steps in timeline.stories(lake, [run], limit=limit, text_chars=chars, run=run):
        for step in steps:
            if isinstance(step, timeline.Step):
                turns += step.turn is not None
                tell(step, turns)
                continue
            if step.left_out:
                line(f"{'':>10}  … {step.left_out:,} steps left out; --limit 0 shows all …")
            turns = step.turns - sum(late.turn is not None for late in step.last)
            for late in step.last:
                turns += late.turn is not None
                tell(late, turns)
    line("")
    line(f"── {timeline.end(metrics)}")


def _cut(text: str, width: int | None) -> str:
    from analytics.render import cut

    return text if width is None else cut(text, width)
