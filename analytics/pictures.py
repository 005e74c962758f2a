"""The line `picture:` of a report's header: what is drawn of its columns, as data.

    -- picture: bar tool denied_calls
    -- picture: column day total_tokens model; column day cost_usd model

A picture is a kind and the columns it shows, in the order of `KINDS`; several are parted by semicolons. `none` draws
nothing. Drawing is the work of `analytics.html.charts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.errors import UsageError

# kind → the roles of its columns; those after the bar may be left out
KINDS: dict[str, str] = {
    "bar": "category value | colour",
    "column": "place value | colour",
    "line": "place value | colour",
    "range": "category low high",
    "histogram": "low high count | mark mark mark mark",
    "timeline": "start end row | percent wall",
}
SHAPES = {kind: roles.replace("| ", "[").replace(" mark mark mark mark", " mark…") for kind, roles in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn: `columns` in the order of the kind's roles."""

    kind: str
    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        """As a header says it."""
        return " ".join((self.kind, *self.columns))


def pictures(text: str) -> tuple[Picture, ...]:
    """The pictures of a header line; a usage error says what is wrong with it."""
    parts = [part.strip() for part in text.split(";")]
    return tuple(_picture(part) for part in parts if part and part != "none")


def _picture(text: str) -> Picture:
    kind, *columns = text.split()
    if kind not in KINDS:
        raise UsageError.unknown_name("kind of picture", kind, list(KINDS))
    needed, _, optional = KINDS[kind].partition("|")
    least, most = len(needed.split()), len(needed.split()) + len(optional.split())
    if not least <= len(columns) <= most:
        said = f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
        shape = SHAPES[kind] + ("]" if "[" in SHAPES[kind] else "")
        raise UsageError(f"The picture {text!r} names {said}. Write `{kind} {shape}`.")
    return Picture(kind, tuple(columns))


def fits(picture: Picture, columns: Sequence[str]) -> str | None:
    """The first column of the picture that the answer does not have."""
    return next((column for column in picture.columns if column not in columns), None)
