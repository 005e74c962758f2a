"""`runlake export --raw`: the bytes to stdout or a file, and on stderr whatever is not as it was."""
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from analytics.commands.options import hang_up, opened, say
from analytics.errors import UsageError

if TYPE_CHECKING:
    from analytics.api import Lake
    from analytics.rawexport import RawExport

LOST_TOLD = 20


def export_raw(name: str, lake: str | None, at: int | None, out: Path | None) -> None:
    """Writes the lines of a source or run. Exits 1 where bytes are missing."""
    from analytics.export import sink

    if out is None and sys.stdout.isatty():
        raise UsageError("The bytes as they came may make a terminal act on them. Add -o FILE, or pipe them on.")
    with opened(lake, at) as source:
        if out is not None:
            _spare_sources(source, out)
        try:
            with sink(out) as to:
                made = source.write_raw(name, to)
        except BrokenPipeError:
            raise hang_up() from None
    tell(made)
    if not made.is_complete:
        raise typer.Exit(1)


def _spare_sources(lake: Lake, out: Path) -> None:
    """A usage error where `out` is a file that was ingested: what is written may have secrets replaced."""
    from analytics.rawlines import sources_called

    if out.exists() and sources_called(lake, str(out)):
        raise UsageError(f"{out} is a source of this lake. Name another file: what is written may not be all of it.")


def tell(made: RawExport) -> None:
    """What a reader of the bytes must know."""
    for note in made.notes:
        say(note)
    if made.redactions:
        many = "1 secret was" if made.redactions == 1 else f"{made.redactions:,} secrets were"
        say(f"{many} replaced when this was read: [REDACTED:…] stands in the place of each. All else is as it was.")
    for lost in made.lost[:LOST_TOLD]:
        say(f"{lost}.")
    if len(made.lost) > LOST_TOLD:
        say(f"And {len(made.lost) - LOST_TOLD:,} more places.")
    if not made.is_complete:
        say(f"Incomplete: {made.octets:,} bytes were written, and the places above are not whole.")
