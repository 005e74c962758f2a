"""Charts of reports: what the header's `picture:` says, drawn with Altair (the extra `runlake[report]`).

Columns are called x, y, c, … inside a chart, so that no name of a column, and no text of a stream, is ever read as
an expression or a path. Colours are Okabe and Ito's, told apart by colour-blind readers, too; on a page they are CSS
variables, so that light, dark and print need no second drawing.
"""
# ruff: noqa: PLC0415 — Altair takes 0.5 s

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from analytics.errors import UsageError
from analytics.pictures import Picture, fits, pictures
from analytics.render import UNKNOWN, shown_columns, visible
from analytics.rows import NUMBERS, Field, Kind, rows_of

if TYPE_CHECKING:
    import duckdb

    from analytics.sqlfiles import SqlFile

MOST_BARS = 15
MOST_DAYS = 120
MOST_COLOURS = 7
MOST_POINTS = 4000
OTHERS = "all others"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f")
INK = {"text": "#1f2328", "soft": "#59636e", "line": "#d1d9e0", "page": "#ffffff", "wall": "#d55e00"}
PAGE_INK = {name: f"var(--{name})" for name in INK}
USE = (("under 50 %", "use1"), ("50 to 80 %", "use2"), ("80 to 100 %", "use3"), ("hit the wall", "wall"))
USE_INK = {"use1": "#9ecae1", "use2": "#4292c6", "use3": "#08519c", "use0": "#c8c8c8"}

# ms: what people count in, from a millisecond to a hundred days
_TIMES = [
    *(1, 10, 100, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 1.2e5, 3e5, 6e5, 1.2e6, 1.8e6, 3.6e6, 7.2e6, 1.8e7, 3.6e7),
    *(8.64e7, 1.728e8, 4.32e8, 8.64e8, 8.64e9),
]
_DAY = "utcFormat(toDate(datum.value + 'T00:00:00Z'), '%-d %b')"
_AXIS = {
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
        import altair as alt
    except ImportError:
        raise UsageError("Charts need Altair. Install it with `pip install 'runlake[report]'`.") from None
    return alt


def chart_of(file: SqlFile, relation: duckdb.DuckDBPyRelation, place: int = 0) -> Any:
    """The chart of one report's rows, in colours that stand by themselves (a notebook, a file)."""
    altair()
    drawn = pictures(file.picture)
    if not 0 <= place < len(drawn):
        what = "draws nothing" if not drawn else f"draws {len(drawn)}: 0 to {len(drawn) - 1}"
        raise UsageError(f"The report {file.name} has no picture {place}: its header {what}.")
    rows = rows_of(relation)
    made = draw(drawn[place], rows.fields, [row for batch in rows.batches for row in zip(*batch, strict=True)], file)
    if made.chart is None:
        raise UsageError(f"The report {file.name} has no rows to draw. {' '.join(made.notes)}".rstrip())
    return made.chart


def draw(
    picture: Picture, fields: Sequence[Field], rows: Sequence[Sequence[Any]], file: SqlFile, *, on_page: bool = False
) -> Drawing:
    """The picture of the rows (plain values); its chart is None where there is nothing to draw."""
    missing = fits(picture, [one.name for one in fields])
    if missing is not None:
        raise UsageError(f"{file.path}: the picture {picture.text!r} names {missing!r}, which the rows do not have.")
    board = _Board(altair(), picture, fields, rows, on_page=on_page)
    made: Drawing = getattr(board, picture.kind)()
    if made.chart is not None:
        made.chart = board.dressed(made.chart, f"{file.title}: {label(picture.columns[1])}")
    return made


def label(name: str) -> str:
    """A column's name as a heading: the words, without the unit that its values carry."""
    words = visible(name).replace("_", " ")
    words = re.sub(r"(?<=.) (usd|ms|percent)$", "", words.strip()) or visible(name)
    return words if re.fullmatch(r"p\d\d", words) else words[:1].upper() + words[1:]


def unit(name: str) -> str:
    """usd, ms, percent, or count."""
    if name.endswith("_ms") or name == "ms":
        return "ms"
    return "usd" if name.endswith("_usd") else "percent" if name.endswith("percent") else "count"


class _Board:
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
        if one.name.endswith("percent"):
            return lambda row: UNKNOWN if row[n] is None else f"{row[n]:,.1f} %"
        return show.get(n, lambda row: UNKNOWN if row[n] is None else str(row[n]))

    # the kinds

    def bar(self) -> Drawing:
        """Lying bars, the largest first as the report has them; stacked where there is a colour."""
        alt, notes = self.alt, []
        values = self._values("x", "y", "c")
        names = list(dict.fromkeys(row["x"] for row in values))
        if len(names) > MOST_BARS:
            kept = set(names[:MOST_BARS])
            values = [row for row in values if row["x"] in kept]
            notes.append(f"The first {MOST_BARS} of {len(names):,}; the table has all.")
        self._note_gaps(notes)
        if not values:
            return Drawing(None, notes)
        many = len(self.names) > 2
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y(field="x", type="nominal", sort=None, title=None, axis=alt.Axis(labelLimit=190, ticks=False)),
            tooltip=self._tips(),
        )
        x = alt.X(field="y", type="quantitative", title=None, axis=self._axis(1, ticks=5))
        bars = base.mark_bar(cornerRadiusEnd=2, height={"band": 0.72})
        if many:
            values, colour = self._coloured(values, notes)
            bars = bars.properties(data=alt.Data(values=values)).encode(x=x, color=colour)
            return Drawing(bars.properties(height=_rows_high(values, "x")), notes, len(values))
        x = alt.X(field="y", type="quantitative", title=None, axis=None, scale=alt.Scale(padding=0))
        text = base.mark_text(align="left", dx=5, fontSize=11, color=self.ink["text"]).encode(
            x=x, text=alt.Text(field="ys", type="nominal")
        )
        bars = bars.encode(x=x, color=alt.value(self.colours[0]))
        both = alt.layer(bars, text).properties(height=_rows_high(values, "x"), padding={"right": 64, "left": 4, "top": 4})
        return Drawing(both, notes, len(values))

    def range(self) -> Drawing:
        """A line from the low to the high value of each category; on a logarithmic axis where they lie far apart."""
        alt, notes = self.alt, []
        values: list[dict[str, Any]] = []
        for row in self.rows:
            low, high = (row[n] for n in self.at[1:3])
            if low is not None and high is not None:
                shown = [show(row) for show in self.show]
                values.append({"y": shown[0], "x": low, "x2": high, "xs": shown[1], "x2s": shown[2]})
        if len(values) > MOST_BARS:
            notes.append(f"The first {MOST_BARS} of {len(values):,}; the table has all.")
            values = values[:MOST_BARS]
        if not values:
            return Drawing(None, notes)
        least, most = min(one["x"] for one in values), max(one["x2"] for one in values)
        is_log = least > 0 and most / least > 100
        kind = unit(self.names[1])
        ticks: Any = alt.Undefined
        if is_log:
            ticks = [t for t in (_TIMES if kind == "ms" else _decades(least, most)) if least <= t <= most] or [least, most]
            notes.append("The axis is logarithmic.")
        axis = alt.Axis(labelExpr=_AXIS[kind], values=ticks, tickCount=6, domain=False, ticks=False, labelOverlap=True)
        scale = alt.Scale(type="log", nice=False) if is_log else alt.Undefined
        x = alt.X(field="x", type="quantitative", title=None, axis=axis, scale=scale)
        high = alt.X(field="x2", type="quantitative", title=None, axis=axis, scale=scale)
        tips = [(label(self.names[0]), "y"), (label(self.names[1]), "xs"), (label(self.names[2]), "x2s")]
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y(field="y", type="nominal", sort=None, title=None, axis=alt.Axis(labelLimit=190, ticks=False)),
            tooltip=self._tips(tips),
        )
        made = alt.layer(
            base.mark_rule(strokeWidth=3, color=self.colours[4]).encode(x=x, x2=alt.X2(field="x2")),
            base.mark_point(filled=True, size=60, opacity=1, color=self.colours[4]).encode(x=x),
            base.mark_point(filled=True, size=60, opacity=1, color=self.colours[0]).encode(x=high),
            base.mark_text(align="left", dx=8, fontSize=11, color=self.ink["text"]).encode(
                x=high, text=alt.Text(field="x2s", type="nominal")
            ),
        )
        notes.insert(0, f"From {label(self.names[1]).lower()} to {label(self.names[2]).lower()}.")
        made = made.properties(height=_rows_high(values, "y"), padding={"right": 64, "left": 4, "top": 4})
        return Drawing(made, notes, len(values))

    def column(self) -> Drawing:
        """Standing columns over days, or over what else the rows are in order of."""
        return self._over_place(is_line=False)

    def line(self) -> Drawing:
        """A line over days, with its points."""
        return self._over_place(is_line=True)

    def _over_place(self, *, is_line: bool) -> Drawing:
        alt, notes = self.alt, []
        values = [row for row in self._values("x", "y", "c") if self.kinds[0] == "text" or row["xv"] is not None]
        lost = sum(1 for row in self.rows if row[self.at[0]] is None and row[self.at[1]] is not None)
        if lost and self.kinds[0] != "text":
            notes.append(f"{lost:,} {'row' if lost == 1 else 'rows'} without {label(self.names[0]).lower()} not drawn.")
        self._note_gaps(notes)
        if not values:
            return Drawing(None, notes)
        x = self._place(values)
        scale = alt.Scale(domain=[0, 100]) if unit(self.names[1]) == "percent" else alt.Undefined
        y = alt.Y(
            field="y", type="quantitative", title=None, scale=scale, axis=self._axis(1, ticks=5)
        )
        base = alt.Chart(alt.Data(values=values))
        colour: Any = alt.value(self.colours[0])
        if len(self.names) > 2:
            values, colour = self._coloured(values, notes, may_add=not is_line)
            base = alt.Chart(alt.Data(values=values))
        mark = base.mark_line(strokeWidth=2, point={"size": 32, "filled": True}) if is_line else base.mark_bar()
        made = mark.encode(x=x, y=y, color=colour, tooltip=self._tips()).properties(height=210)
        return Drawing(made, notes, len(values))

    def _place(self, values: list[dict[str, Any]]) -> Any:
        """The axis below: each day of the span has its place, also those without rows; a long span is a time axis."""
        alt = self.alt
        if self.kinds[0] not in ("moment", "temporal"):
            axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)
            return alt.X(field="x", type="nominal", sort=None, title=None, axis=axis)
        days = _days(row[self.at[0]] for row in self.rows)
        for row in values:
            row["x"] = row["xv"]
        if self.kinds[0] == "moment" or not 0 < len(days) <= MOST_DAYS:
            axis = alt.Axis(labelOverlap=True, grid=False, tickCount=10, format="%-d %b")
            scale = alt.Scale(type="utc")
            if self.kinds[0] == "moment" or self.picture.kind == "line":
                return alt.X(field="x", type="temporal", title=None, scale=scale, axis=axis)
            return alt.X(field="x", type="temporal", timeUnit="utcyearmonthdate", title=None, scale=scale, axis=axis)
        axis = alt.Axis(labelExpr=_DAY, labelAngle=0, labelOverlap="greedy", labelSeparation=8, ticks=False)
        scale = alt.Scale(domain=days, paddingInner=0.18, paddingOuter=0.1)
        return alt.X(field="x", type="ordinal", title=None, scale=scale, axis=axis)

    def histogram(self) -> Drawing:
        """Columns over ranges on a logarithmic axis, with the percentiles as lines."""
        alt, notes = self.alt, []
        made, nothing = [], 0
        for row in self.rows:
            low, high, count = (row[n] for n in self.at[:3])
            if low is None or high is None:
                continue
            if not low:
                nothing = count
                continue
            said = f"{self.show[0](row)} to {self.show[1](row)}"
            made.append({"x": low, "x2": high, "y": count, "xs": said, "ys": self.show[2](row)})
        if nothing:
            notes.append(f"{nothing:,} more at 0.")
        if not made:
            return Drawing(None, notes)
        kind = unit(self.names[0])
        least, most = min(row["x"] for row in made), max(row["x2"] for row in made)
        ticks = [t for t in (_TIMES if kind == "ms" else _decades(least, most)) if least <= t <= most]
        axis = alt.Axis(values=ticks or [least, most], labelExpr=_AXIS[kind], grid=False, labelOverlap=True)
        scale = alt.Scale(type="log", domain=[least, most], nice=False)
        bars = alt.Chart(alt.Data(values=made)).mark_bar(stroke=self.ink["page"], strokeWidth=1).encode(
            x=alt.X(field="x", type="quantitative", title=None, scale=scale, axis=axis), x2=alt.X2(field="x2"),
            y=alt.Y(field="y", type="quantitative", title=None, axis=self._axis(2, ticks=4)), y2=alt.datum(0),
            color=alt.value(self.colours[0]), tooltip=self._tips([("Range", "xs"), (label(self.names[2]), "ys")]),
        )  # fmt: skip
        first = self.rows[0]
        rules = [
            {"x": first[n], "t": name.split("_")[0], "xs": show(first)}
            for n, name, show in zip(self.at[3:], self.names[3:], self.show[3:], strict=True)
            if first[n] is not None and first[n] > 0
        ]
        if not rules:
            return Drawing(bars.properties(height=170), notes, len(made))
        lines = alt.Chart(alt.Data(values=rules)).encode(x=alt.X(field="x", type="quantitative", scale=scale))
        rule = lines.mark_rule(strokeDash=[3, 3], color=self.ink["soft"]).encode(
            tooltip=self._tips([("Percentile", "t"), ("Value", "xs")])
        )
        notes.insert(0, "Dashed: " + ", ".join(f"{rule['t']} {rule['xs']}" for rule in rules) + ".")
        return Drawing(alt.layer(bars, rule).properties(height=170), notes, len(made))

    def timeline(self) -> Drawing:
        """A row of windows for each limit, coloured by how full they got; hit walls have a mark of their own."""
        alt, notes = self.alt, []
        made: list[dict[str, Any]] = []
        for row in self.rows:
            start, end = (row[n] for n in self.at[:2])
            if start is None or end is None:
                continue
            used = row[self.at[3]] if len(self.at) > 3 else None
            wall = row[self.at[4]] if len(self.at) > 4 else None
            level = "not known" if used is None else _level(used)
            made.append({
                "x": start, "x2": end, "y": self.show[2](row), "c": USE[3][0] if wall else level, "wall": bool(wall),
                "us": self.show[3](row) if len(self.at) > 3 else UNKNOWN, "xs": self.show[0](row),
                "x2s": self.show[1](row), "ws": "yes" if wall else UNKNOWN if wall is None else "no",
            })  # fmt: skip
        lost = len(self.rows) - len(made)
        if lost:
            notes.append(f"{lost:,} {'window' if lost == 1 else 'windows'} without a time not drawn.")
        if not made:
            return Drawing(None, notes)
        if len(made) > MOST_POINTS:
            notes.append(f"The last {MOST_POINTS:,} of {len(made):,} windows.")
            made = sorted(made, key=lambda one: one["x2"])[-MOST_POINTS:]
        seen = {one["c"] for one in made}
        levels = [pair for pair in (*USE, ("not known", "use0")) if pair[0] in seen]
        inks = [self._use(name) for _, name in levels]
        axis = alt.Axis(labelOverlap=True, format="%-d %b", grid=True, tickCount=8)
        base = alt.Chart(alt.Data(values=made)).encode(
            y=alt.Y(field="y", type="nominal", title=None, axis=alt.Axis(labelLimit=150, ticks=False)),
            tooltip=self._tips([
                ("Limit", "y"), ("From", "xs"), ("To", "x2s"), ("Peak use, percent", "us"), ("Hit the wall", "ws")
            ]),
        )  # fmt: skip
        x = alt.X(field="x", type="temporal", title=None, scale=alt.Scale(type="utc"), axis=axis)
        bars = base.mark_bar(height={"band": 0.6}, stroke=self.ink["page"], strokeWidth=0.5).encode(
            x=x, x2=alt.X2(field="x2"),
            color=alt.Color(
                field="c", type="nominal", title=None, sort=[name for name, _ in levels],
                scale=alt.Scale(domain=[name for name, _ in levels], range=inks),
            ),
        )  # fmt: skip
        if not any(one["wall"] for one in made):
            return Drawing(bars.properties(height=_rows_high(made, "y", 42)), notes, len(made))
        walls = (
            base.transform_filter(alt.FieldEqualPredicate(field="wall", equal=True))
            .mark_point(shape="triangle-down", filled=True, size=46, yOffset=-15, color=self.ink["wall"], opacity=1)
            .encode(x=x)
        )
        return Drawing(alt.layer(bars, walls).properties(height=_rows_high(made, "y", 42)), notes, len(made))

    # what the kinds share

    def _use(self, name: str) -> str:
        if name == "wall":
            return self.ink["wall"]
        return f"var(--{name})" if self.on_page else USE_INK[name]

    def _values(self, *roles: str) -> list[dict[str, Any]]:
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

    def _note_gaps(self, notes: list[str]) -> None:
        gaps = sum(1 for row in self.rows if row[self.at[1]] is None)
        if gaps:
            what = label(self.names[1]).lower()
            notes.append(f"{gaps:,} {'row' if gaps == 1 else 'rows'} of unknown {what} not drawn.")

    def _coloured(
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

    def _axis(self, n: int, *, ticks: int) -> Any:
        return self.alt.Axis(labelExpr=_AXIS[unit(self.names[n])], tickCount=ticks, domain=False, ticks=False)

    def _tips(self, said: Sequence[tuple[str, str]] | None = None) -> list[Any]:
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
            .configure_legend(
                orient="top", labelColor=ink["text"], titleColor=ink["soft"], labelFontSize=11, titleFontSize=11,
                titleFontWeight="normal", symbolType="square", symbolSize=90, labelLimit=150, columns=4, offset=14,
                symbolStrokeWidth=0,
            )
        )  # fmt: skip


def _rows_high(values: Sequence[dict[str, Any]], name: str, each: int = 26) -> int:
    """The height in pixels of a row for each category (a step would make Vega-Lite warn beside a fitted width)."""
    return each * len({one[name] for one in values})


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


def _level(percent: float) -> str:
    return USE[0][0] if percent < 50 else USE[1][0] if percent < 80 else USE[2][0]


def _decades(least: float, most: float) -> list[float]:
    """Round numbers on a logarithmic axis: by 1, 2, 5, or by powers of ten where there are many."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [float(f"{step}e{power}") for power in powers for step in steps]


def _days(said: Iterable[Any]) -> list[str]:
    """Every day from the first to the last; nothing where one is outside the years 1 to 9999."""
    try:
        days = {date.fromisoformat(str(day)) for day in said if day is not None}
    except ValueError:
        return []
    first, count = min(days), (max(days) - min(days)).days + 1
    return [(first + timedelta(days=n)).isoformat() for n in range(min(count, MOST_DAYS + 1))]


def requests_spec() -> dict[str, Any]:
    """The chart of a run's requests, without rows (n, kind, tokens, t): report.js puts them in."""
    alt = altair()
    board = _Board(alt, Picture("column", ("n", "tokens", "kind")), [Field("n", "integer"), Field("tokens", "integer"),
                   Field("kind", "text")], [], on_page=True)  # fmt: skip
    kinds = ["from the cache", "other input", "output"]
    made = alt.Chart(alt.Data(values=[])).mark_bar().encode(
        x=alt.X(field="n", type="ordinal", title=None, axis=alt.Axis(labelOverlap=True, labelAngle=0, ticks=False)),
        y=alt.Y(field="tokens", type="quantitative", title=None, axis=board._axis(1, ticks=4)),  # noqa: SLF001
        order=alt.Order(field="o", type="quantitative"),
        color=alt.Color(
            field="kind", type="nominal", title=None, sort=kinds,
            scale=alt.Scale(domain=kinds, range=["var(--c5)", "var(--c1)", "var(--c2)"]),
        ),
        tooltip=[
            alt.Tooltip(field="n", type="nominal", title="Request"), alt.Tooltip(field="kind", type="nominal", title="Tokens"),
            alt.Tooltip(field="tokens", type="quantitative", title="Count", format=","),
            alt.Tooltip(field="t", type="nominal", title="After"),
        ],
    ).properties(height=130)  # fmt: skip
    spec: dict[str, Any] = board.dressed(made, "Tokens of each request").to_dict()
    return spec
