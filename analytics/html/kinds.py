"""The kinds of pictures: bars, columns, lines, ranges, histograms, and windows over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from analytics.html.board import AXIS, Board, Drawing, label, unit
from analytics.render import UNKNOWN

MOST_BARS = 20
MOST_DAYS = 120
MOST_POINTS = 4000
USE = (("under 50 %", "use1"), ("50 to 80 %", "use2"), ("80 to 100 %", "use3"), ("hit the wall", "wall"))
USE_INK = {"use1": "#9ecae1", "use2": "#4292c6", "use3": "#08519c", "use0": "#c8c8c8"}

# ms: what people count in, from a millisecond to a hundred days
_TIMES = [
    *(1, 10, 100, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 1.2e5, 3e5, 6e5, 1.2e6, 1.8e6, 3.6e6, 7.2e6, 1.8e7, 3.6e7),
    *(8.64e7, 1.728e8, 4.32e8, 8.64e8, 8.64e9),
]
BESIDE_TEXT = {"left": 4, "right": 16, "top": 4, "bottom": 8}  # what stands at the end of a bar or below an axis
_DAY = "utcFormat(toDate(datum.value + 'T00:00:00Z'), '%-d %b')"


class Kinds(Board):
    """A board with a method for each kind of picture in `analytics.pictures.KINDS`."""

    def bar(self) -> Drawing:
        """Lying bars, the largest first as the report has them; stacked where there is a colour."""
        alt, notes = self.alt, []
        values = self.values("x", "y", "c")
        many = len(self.names) > 2
        sums: dict[str, float] = {}
        for row in values:
            sums[row["x"]] = sums.get(row["x"], 0) + row["y"]
        is_split = not many and len(sums) < len(values)
        if is_split:
            notes.append(f"Several rows of one {label(self.names[0]).lower()} lie one behind the other.")
        names = sorted(sums, key=lambda name: -sums[name]) if many or is_split else list(sums)
        if len(names) > MOST_BARS:
            kept = set(names[:MOST_BARS])
            values = [row for row in values if row["x"] in kept]
            notes.append(f"The first {MOST_BARS} of {len(names):,}; the table has all.")
        self.note_gaps(notes)
        if not values:
            return Drawing(None, notes)
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y(field="x", type="nominal", sort=names[:MOST_BARS], title=None, axis=alt.Axis(ticks=False)),
            tooltip=self.tips(),
        )
        x = alt.X(field="y", type="quantitative", title=None, axis=self.axis(1, ticks=5))
        bars = base.mark_bar(cornerRadiusEnd=2, height={"band": 0.72})
        if many:
            values, colour = self.coloured(values, notes)
            bars = bars.properties(data=alt.Data(values=values)).encode(x=x, color=colour)
            return Drawing(bars.properties(height=_rows_high(values, "x")), notes, len(values))
        if is_split:
            bars = bars.encode(x=x, color=alt.value(self.colours[0])).properties(height=_rows_high(values, "x"))
            return Drawing(bars, notes, len(values))
        x = alt.X(field="y", type="quantitative", title=None, axis=None, scale=alt.Scale(padding=0))
        text = base.mark_text(align="left", dx=5, fontSize=11, color=self.ink["text"]).encode(
            x=x, text=alt.Text(field="ys", type="nominal")
        )
        bars = bars.encode(x=x, color=alt.value(self.colours[0]))
        both = alt.layer(bars, text).properties(height=_rows_high(values, "x"), padding=BESIDE_TEXT)
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
            ticks = [t for t in (_TIMES if kind == "ms" else _decades(least, most)) if least <= t <= most] or [
                least,
                most,
            ]
            notes.append("The axis is logarithmic.")
        axis = alt.Axis(labelExpr=AXIS[kind], values=ticks, tickCount=6, domain=False, ticks=False, labelOverlap=True)
        scale = alt.Scale(type="log", nice=False) if is_log else alt.Undefined
        x = alt.X(field="x", type="quantitative", title=None, axis=axis, scale=scale)
        high = alt.X(field="x2", type="quantitative", title=None, axis=axis, scale=scale)
        tips = [(label(self.names[0]), "y"), (label(self.names[1]), "xs"), (label(self.names[2]), "x2s")]
        base = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y(field="y", type="nominal", sort=None, title=None, axis=alt.Axis(ticks=False)),
            tooltip=self.tips(tips),
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
        made = made.properties(height=_rows_high(values, "y"), padding=BESIDE_TEXT)
        return Drawing(made, notes, len(values))

    def column(self) -> Drawing:
        """Standing columns over days, or over what else the rows are in order of."""
        return self._over_place(is_line=False)

    def line(self) -> Drawing:
        """A line over days, with its points."""
        return self._over_place(is_line=True)

    def _over_place(self, *, is_line: bool) -> Drawing:
        alt, notes = self.alt, []
        values = [row for row in self.values("x", "y", "c") if self.kinds[0] == "text" or row["xv"] is not None]
        lost = sum(1 for row in self.rows if row[self.at[0]] is None and row[self.at[1]] is not None)
        if lost and self.kinds[0] != "text":
            notes.append(f"{lost:,} {'row' if lost == 1 else 'rows'} without {label(self.names[0]).lower()} not drawn.")
        self.note_gaps(notes)
        if not values:
            return Drawing(None, notes)
        x = self._place(values)
        scale = alt.Scale(domain=[0, 100]) if unit(self.names[1]) == "percent" else alt.Undefined
        y = alt.Y(field="y", type="quantitative", title=None, scale=scale, axis=self.axis(1, ticks=5))
        base = alt.Chart(alt.Data(values=values))
        colour: Any = alt.value(self.colours[0])
        if len(self.names) > 2:
            values, colour = self.coloured(values, notes, may_add=not is_line)
            base = alt.Chart(alt.Data(values=values))
        mark = base.mark_line(strokeWidth=2, point={"size": 32, "filled": True}) if is_line else base.mark_bar()
        made = mark.encode(x=x, y=y, color=colour, tooltip=self.tips())
        made = made.properties(height=210, padding={"left": 5, "right": 16, "top": 5, "bottom": 5})
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
        axis = alt.Axis(values=ticks or [least, most], labelExpr=AXIS[kind], grid=False, labelOverlap=True)
        scale = alt.Scale(type="log", domain=[least, most], nice=False)
        bars = alt.Chart(alt.Data(values=made)).mark_bar(stroke=self.ink["page"], strokeWidth=1).encode(
            x=alt.X(field="x", type="quantitative", title=None, scale=scale, axis=axis), x2=alt.X2(field="x2"),
            y=alt.Y(field="y", type="quantitative", title=None, axis=self.axis(2, ticks=4)), y2=alt.datum(0),
            color=alt.value(self.colours[0]), tooltip=self.tips([("Range", "xs"), (label(self.names[2]), "ys")]),
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
        ground = lines.mark_rule(strokeWidth=4, color=self.ink["page"], opacity=0.85)  # the bars have any height
        rule = lines.mark_rule(strokeDash=[4, 2], strokeWidth=1.5, color=self.ink["text"]).encode(
            tooltip=self.tips([("Percentile", "t"), ("Value", "xs")])
        )
        notes.insert(0, "Dashed: " + ", ".join(f"{rule['t']} {rule['xs']}" for rule in rules) + ".")
        return Drawing(alt.layer(bars, ground, rule).properties(height=170), notes, len(made))

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
        axis = alt.Axis(labelOverlap="greedy", labelSeparation=10, format="%-d %b", grid=True, tickCount=8)
        base = alt.Chart(alt.Data(values=made)).encode(
            y=alt.Y(field="y", type="nominal", title=None, axis=alt.Axis(ticks=False)),
            tooltip=self.tips([
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

    def _use(self, name: str) -> str:
        if name == "wall":
            return self.ink["wall"]
        return f"var(--{name})" if self.on_page else USE_INK[name]


def _rows_high(values: Sequence[dict[str, Any]], name: str, each: int = 26) -> int:
    """The height in pixels of a row for each category (a step would make Vega-Lite warn beside a fitted width)."""
    return each * len({one[name] for one in values})


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
