"""What all pictures of reports share: rows as values of a chart, colours, axes, tooltips, the dress."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.errors import UsageError
from analytics.pictures import Picture
from analytics.render import UNKNOWN, shown_columns, visible
from analytics.rows import Field, Kind

MOST_COLOURS = 7
OTHERS = "all others"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f")
INK = {"text": "#1f2328", "soft": "#59636e", "line": "#d1d9e0", "page": "#ffffff", "wall": "#d55e00"}
PAGE_INK = {name: f"var(--{name})" for name in INK}

AXIS = {
    "usd": "format(datum.value, '$,~f')",
    "ms": "datum.value < 1000 ? format(datum.value, '~f') + ' ms' : datum.value < 60000 ? "
    "format(datum.value / 1000, '~f') + ' s' : datum.value < 3600000 ? format(datum.value / 60000, '.3~f') + ' min' : "
    "datum.value < 86400000 ? format(datum.value / 3600000, '.3~f') + ' h' : "
    "format(datum.value / 86400000, '.3~f') + ' d'",
    "percent": "format(datum.value, '~f') + ' %'",
    "count": "datum.value < 1000 ? format(datum.value, ',~f') : replace(format(datum.value, '.3~s'), 'G', 'B')",
}

Show = Callable[[Sequence[Any]], str]


@dataclass(slots=True)
class Drawing:
    """An Altair chart and what a reader must know beside it."""

    chart: Any
    notes: list[str] = field(default_factory=list)
    marks: int = 0


def altair() -> Any:
    """The library, or a usage error that names the extra."""
    try:
        import altair as alt  # noqa: PLC0415 (0.5 s, and an extra)
    except ImportError:
        raise UsageError("Charts need Altair. Install it with `pip install 'runlake[report]'`.") from None
    return alt


def label(name: str) -> str:
    """A column's name as a heading: the words, without the unit that its values carry."""
    words = "share" if name == "percent" else visible(name).replace("_", " ")
    words = re.sub(r"(?<=.) (usd|ms|percent)$", "", words.strip()) or visible(name)
    return words if re.fullmatch(r"p\d\d", words) else words[:1].upper() + words[1:]


def unit(name: str) -> str:
    """usd, ms, percent, or count."""
    if name.endswith("_ms") or name == "ms":
        return "ms"
    return "usd" if name.endswith("_usd") else "percent" if name.endswith("percent") else "count"


class Board:
    """One picture over its rows; each kind of picture is a method."""

    def __init__(
        self, alt: Any, picture: Picture, fields: Sequence[Field], rows: Sequence[Sequence[Any]], *, on_page: bool
    ) -> None:
        self.alt, self.picture, self.rows, self.on_page = alt, picture, rows, on_page
        self.names = list(picture.columns)
        place = {one.name: n for n, one in enumerate(fields)}
        self.at = [place[name] for name in self.names]
        self.kinds: list[Kind] = [fields[n].kind for n in self.at]
        show = {column.index: column.cell for column in shown_columns(fields)}
        self.show = [self._shower(n, fields[n], show) for n in self.at]
        self.ink = PAGE_INK if on_page else INK
        self.colours = [f"var(--c{n})" for n in range(1, 9)] if on_page else list(PALETTE)

    def _shower(self, n: int, one: Field, show: Mapping[int, Show]) -> Show:
        """How a column's values are written beside the marks: as in the tables, percentages to one place."""
        if one.name == "share":
            return lambda row: UNKNOWN if row[n] is None else f"{100 * row[n]:,.1f} %"
        if one.name.endswith("percent"):
            return lambda row: UNKNOWN if row[n] is None else f"{row[n]:,.1f} %"
        return show.get(n, lambda row: UNKNOWN if row[n] is None else str(row[n]))

    def values(self, *roles: str) -> list[dict[str, Any]]:
        """Rows whose figure is known: what is drawn (x, y, c), and how each is shown (xs, ys, cs)."""
        made = []
        for row in self.rows:
            one: dict[str, Any] = {}
            for role, n, show in zip(roles, self.at, self.show, strict=False):
                one[f"{role}v"], one[f"{role}s"] = row[n], show(row)
                one[role] = row[n] if role == "y" else show(row)
            value = one["y"]
            if isinstance(value, int | float) and math.isfinite(value):
                made.append(one)
        return made

    def note_gaps(self, notes: list[str]) -> None:
        """Adds how many rows have no figure."""
        gaps = sum(1 for row in self.rows if row[self.at[1]] is None)
        if gaps:
            what = label(self.names[1]).lower()
            notes.append(f"{gaps:,} {'row' if gaps == 1 else 'rows'} of unknown {what} not drawn.")

    def coloured(
        self, values: list[dict[str, Any]], notes: list[str], *, may_add: bool = True
    ) -> tuple[list[dict[str, Any]], Any]:
        """The rows with their colours: the largest by themselves, the rest added up (or left out) as one."""
        alt = self.alt
        sums: dict[str, float] = {}
        for row in values:
            sums[row["c"]] = sums.get(row["c"], 0) + abs(row["y"])
        order = sorted(sums, key=lambda name: -sums[name])
        if len(order) > MOST_COLOURS + 1:
            kept = set(order[:MOST_COLOURS])
            rest = len(order) - MOST_COLOURS
            if may_add:
                values = _merged(values, kept)
                order = [*order[:MOST_COLOURS], OTHERS]
                notes.append(f"{OTHERS.capitalize()}: {rest} with less; the table has each.")
            else:
                values = [row for row in values if row["c"] in kept]
                order = order[:MOST_COLOURS]
                notes.append(f"The {MOST_COLOURS} with most; the table has {rest} more.")
        scale = alt.Scale(domain=order, range=self.colours[: len(order)])
        return values, alt.Color(field="c", type="nominal", title=None, scale=scale, sort=order)

    def axis(self, n: int, *, ticks: int) -> Any:
        """The axis of the nth column, its labels in the column's unit."""
        return self.alt.Axis(labelExpr=AXIS[unit(self.names[n])], tickCount=ticks, domain=False, ticks=False)

    def tips(self, said: Sequence[tuple[str, str]] | None = None) -> list[Any]:
        """The tooltip: a title and the field with its text, for each line."""
        pairs = said or [(label(name), f"{role}s") for name, role in zip(self.names, "xyc", strict=False)]
        titles: dict[str, str] = {}
        for title, of in pairs:  # one title must not take the place of another
            titles[title if title not in titles else f"{title} ({of})"] = of
        return [self.alt.Tooltip(field=of, type="nominal", title=title) for title, of in titles.items()]

    def dressed(self, chart: Any, description: str) -> Any:
        """The chart in the page's dress: no frame, thin lines, one typeface."""
        ink = self.ink
        if chart.width is self.alt.Undefined:
            chart = chart.properties(width="container" if self.on_page else 560)
        font = "system-ui, sans-serif" if self.on_page else "sans-serif"
        return (
            chart.properties(description=description, background="transparent" if self.on_page else ink["page"])
            .configure(font=font)
            .configure_view(stroke=None)
            .configure_axis(
                labelColor=ink["soft"], titleColor=ink["soft"], gridColor=ink["line"], domainColor=ink["line"],
                tickColor=ink["line"], labelFontSize=11, titleFontSize=11, titleFontWeight="normal", labelPadding=6,
                gridOpacity=0.6,
            )
            .configure_axisY(labelLimit=220)
            .configure_legend(
                orient="top", labelColor=ink["text"], titleColor=ink["soft"], labelFontSize=11, titleFontSize=11,
                titleFontWeight="normal", symbolType="square", symbolSize=90, labelLimit=150, columns=5, offset=14,
                symbolStrokeWidth=0,
            )
        )  # fmt: skip


def _merged(values: list[dict[str, Any]], kept: set[str]) -> list[dict[str, Any]]:
    """The rows of the kept colours, and one row for all others at the same place."""
    made = [row for row in values if row["c"] in kept]
    rest: dict[Any, dict[str, Any]] = {}
    for row in values:
        if row["c"] in kept:
            continue
        one = rest.setdefault(row["x"], row | {"c": OTHERS, "cs": OTHERS, "y": 0, "n": 0})
        one["y"] += row["y"]
        one["n"] += 1
        one["ys"] = f"{one['y']:,.4f}".rstrip("0").rstrip(".") + f" ({one['n']} together)"
    return [*made, *rest.values()]
