"""Reports as one bounded Markdown text, to paste into a pull request's comment.

A heading and a short table each, figures as a terminal shows them (– unknown, ≥ at least), the first rows only and how
many more there are; then what is unknown, a lower bound or left out. Nothing in it acts: text is escaped as in every
Markdown output.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from analytics.export import inert_markdown
from analytics.render import UNKNOWN, shown_columns
from analytics.reportset import Report

TOP = 10
LONGEST_CELL = 120
LONGEST = 60_000  # characters; GitHub takes 65,536 in a comment
QUALITY = "data_quality"


def write_summary(reports: Iterable[Report], quality: Report, head: str, top: int, to: IO[bytes]) -> None:
    """Writes the summary. What would make it longer than LONGEST is left out and named."""
    notes = "".join(_notes(quality))
    room = LONGEST - len(head) - len(notes) - 1000
    left_out: list[str] = []
    to.write(f"{head}\n".encode())
    for report in reports:
        text = "".join(_section(report, top))
        if len(text) > room:
            left_out.append(report.name)
            continue
        room -= len(text)
        to.write(text.encode("utf-8", "backslashreplace"))
    if left_out:
        names = ", ".join(inert_markdown(name) for name in left_out[:20])
        more = "" if len(left_out) <= 20 else f" and {len(left_out) - 20:,} more"
        to.write(f"\nLeft out, since the text would be too long: {names}{more}.\n".encode())
    to.write(notes.encode())


def _section(report: Report, top: int) -> Iterable[str]:
    columns = shown_columns(report.rows.fields)
    lines: list[str] = []
    count = 0
    for values in report.rows.batches:
        for row in zip(*values, strict=True):
            count += 1
            if count <= top:
                cells = (_cell(column.cell(row)) for column in columns)
                lines.append(f"| {' | '.join(cells)} |\n")
    yield f"\n## {inert_markdown(report.title or report.name)}\n\n"
    if not lines:
        yield "No rows.\n"
        return
    yield f"| {' | '.join(inert_markdown(column.name) for column in columns)} |\n"
    yield f"| {' | '.join('---' if column.is_left else '---:' for column in columns)} |\n"
    yield from lines
    if count > top:
        yield f"\n… and {count - top:,} more rows.\n"


def _cell(text: str) -> str:
    """A cell, cut before it is escaped, so that no escape is cut in two."""
    return inert_markdown(text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…")


def _notes(quality: Report) -> Iterable[str]:
    names = [field.name for field in quality.rows.fields]
    yield f"\n## {quality.title}\n\n"
    found = False
    for values in quality.rows.batches:
        for row in zip(*values, strict=True):
            said = dict(zip(names, row, strict=True))
            if said["touched"]:
                found = True
                share = UNKNOWN if said["share"] is None else f"{said['share'] * 100:.3g} %"
                yield f"* {said['topic']}: {said['touched']:,} of {said['of_all']:,} {said['unit']} ({share})\n"
    yield "" if found else "Nothing is unknown, a lower bound or left out.\n"
    yield f"\n{UNKNOWN} = unknown, never zero; ≥ = at least; times and days are UTC.\n"
