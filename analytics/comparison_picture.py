"""The picture of a comparison: the interval of each metric, and beside it the differences of its tasks.

Both are relative to A's mean, so that metrics of different units stand on one scale; what has no such figure (A's mean
is zero) is named beside the picture. Drawn without a network: Vega-Lite through vl-convert.

A .svg and a .html follow the reader's scheme, light or dark: the marks carry the light colours, and a style sheet
replaces each by its dark one. What knows no style sheets, and a .png, shows the light picture on white.
"""
# ruff: noqa: PLC0415 — Altair takes 0.5 s and is an extra

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.errors import UsageError

if TYPE_CHECKING:
    from analytics.comparison_runs import Comparison

SUFFIXES = (".svg", ".png", ".html")
PIXELS_PER_POINT = 2  # of a .png
LONGEST_NAME = 60
MANY, FAINT = 60, 0.15  # so many tasks a metric lie over each other: how opaque they then are
# by verdict; told apart also by people who do not see red and green, and in grey
COLOURS = {
    "better": "#0072b2", "worse": "#d55e00", "higher": "#56b4e9", "lower": "#cc79a7", "no difference shown": "#5f5f5f",
    "not decidable": "#a8a8a8",
}  # fmt: skip
INK = {"page": "#ffffff", "text": "#1f2328", "soft": "#59636e", "line": "#d8dee4", "zero": "#777777", "dot": "#444444"}
# light colour → dark colour, for all of the above
DARK = {
    "#0072b2": "#4aa3df", "#d55e00": "#f08340", "#56b4e9": "#a9def8", "#cc79a7": "#dd93bd", "#5f5f5f": "#b4b8bd",
    "#a8a8a8": "#70767d", "#ffffff": "#0f1318", "#1f2328": "#e6e9ed", "#59636e": "#9aa4af", "#d8dee4": "#2c343d",
    "#777777": "#8a929b", "#444444": "#c3c8ce",
}  # fmt: skip


def check_picture(path: Path) -> None:
    """A usage error if the picture cannot be drawn: an unknown suffix, or the extra is not installed."""
    from importlib.util import find_spec

    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"No picture has the suffix {path.suffix!r}. Use one of {', '.join(SUFFIXES)}.")
    if any(find_spec(name) is None for name in ("altair", "vl_convert")):
        raise UsageError("A picture needs Altair and vl-convert: pip install 'runlake[report]'.")


def draw(comparison: Comparison, path: Path) -> list[str]:
    """Writes the picture; gives what it could not show, a sentence each."""
    from analytics.export import sink

    check_picture(path)
    notes = []
    rows = comparison.metrics.to_dicts()
    hidden = [row["metric"] for row in rows if row.get("relative_percent") is None]
    if hidden:
        notes.append(f"Not in the picture, since they are no share of A's mean (unknown, or 0): {', '.join(hidden)}.")
    kind = path.suffix.lower()[1:]
    chart = chart_of(comparison)
    if kind == "png":
        buffer = io.BytesIO()
        chart.save(buffer, format="png", scale_factor=PIXELS_PER_POINT)
        data = buffer.getvalue()
    elif kind == "svg":
        text = io.StringIO()
        chart.save(text, format="svg")
        opening, mark, rest = text.getvalue().partition(">")
        data = f"{opening}{mark}<style>{_in_dark()}</style>{rest}".encode()
    else:
        page = chart.to_html(inline=True, embed_options={"actions": False, "renderer": "svg"})
        styles = f'<meta name="color-scheme" content="light dark">\n<style>{_in_dark()}{_page_in_dark()}</style>'
        data = page.replace("<head>", f"<head>\n{styles}", 1).encode()
    with sink(path) as to:
        to.write(data)
    return notes


def _in_dark() -> str:
    """The style sheet that replaces the light colours of marks, lines and text where the reader's scheme is dark."""
    rules = "".join(f'[{of}="{light}"]{{{of}:{dark}}}' for light, dark in DARK.items() for of in ("fill", "stroke"))
    return f"@media (prefers-color-scheme: dark){{{rules}}}"


def _page_in_dark() -> str:
    """The style sheet of the page around it, and of the ground that Vega gives its drawing by a style of its own."""
    page, text = DARK[INK["page"]], DARK[INK["text"]]
    ground = f"body{{background:{page};color:{text}}}svg.marks{{background:{page} !important}}"
    return f"@media (prefers-color-scheme: dark){{{ground}}}"


def chart_of(comparison: Comparison) -> Any:
    """The picture, dressed in our colours alone (each has a dark one)."""
    return (
        _drawn(comparison)
        .configure(background=INK["page"])
        .configure_view(stroke=INK["line"])
        .configure_axis(
            labelColor=INK["text"], titleColor=INK["text"], gridColor=INK["line"], domainColor=INK["soft"],
            tickColor=INK["soft"],
        )
        .configure_legend(labelColor=INK["text"], titleColor=INK["text"], symbolStrokeWidth=0)
        .configure_title(color=INK["text"], subtitleColor=INK["text"])
        .configure_text(color=INK["text"])
    )  # fmt: skip


def _drawn(comparison: Comparison) -> Any:
    """The picture as an Altair chart: the intervals, and where runs are paired the tasks."""
    import altair as alt

    rows = [_interval(row) for row in comparison.metrics.to_dicts() if row.get("relative_percent") is not None]
    order = [row["metric"] for row in rows]
    tasks = [_task(row) for row in comparison.tasks.to_dicts() if row["metric"] in order and row["is_paired"]]
    tasks = [row for row in tasks if row["percent"] is not None]
    title = alt.TitleParams(
        f"{_safe(comparison.b)} against {_safe(comparison.a)}",
        subtitle=[
            f"by {comparison.by}, "
            + ("paired by task" if comparison.pairing == "task" else "unpaired: no run names a task"),
            f"{comparison.settings.level * 100:g} % intervals, {comparison.settings.resamples:,} resamples",
        ],
        anchor="start",
    )
    if not rows:
        return (
            alt.Chart(_data([{"text": "No metric has a relative difference to show."}]), title=title)
            .mark_text(align="left")
            .encode(text="text:N", x=alt.value(0))
            .properties(width=420, height=40)
        )
    y = alt.Y("metric:N", sort=order, title=None, axis=alt.Axis(labelLimit=200))
    zero = alt.Chart(_data([{"zero": 0}])).mark_rule(strokeDash=[4, 3], color=INK["zero"]).encode(x="zero:Q")
    plain = alt.Chart(_data(rows)).encode(y=y, tooltip=["metric:N", "verdict:N", "shown:N", "reason:N"])
    base = plain.encode(
        color=alt.Color(
            "verdict:N", title="verdict",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=alt.Legend(orient="bottom"),
        ),
    )  # fmt: skip
    axis = alt.Axis(tickCount=6, labelFlush=False)
    across = alt.X(
        "percent:Q", title="mean difference, % of A's mean", scale=alt.Scale(zero=True, padding=18), axis=axis
    )
    words = plain.encode(x=across, text="shown:N")
    intervals = alt.layer(
        zero,
        base.mark_rule(strokeWidth=3).encode(
            x=alt.X("low:Q", title="mean difference, % of A's mean", axis=axis), x2="high:Q"
        ),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=across),
        words.mark_text(
            dy=-12, fontSize=10, color=INK["page"], stroke=INK["page"], strokeWidth=4
        ),  # lines end before them
        words.mark_text(dy=-12, fontSize=10, color=INK["text"]),
    ).properties(width=380, height=alt.Step(36), title=alt.TitleParams("interval of the mean", fontSize=11))
    if not tasks:
        return intervals.properties(title=title)
    dots = (
        alt.Chart(_data(tasks))
        .mark_point(filled=True, size=45, opacity=FAINT if len(tasks) > MANY * len(rows) else 0.55, color=INK["dot"])
        .encode(
            y=alt.Y("metric:N", sort=order, title=None, axis=alt.Axis(labels=False, ticks=False)),
            x=alt.X(
                "percent:Q", title="difference of a task, % of A's mean in it", scale=alt.Scale(padding=12), axis=axis
            ),
            tooltip=["task:N", "metric:N", "shown:N"],
        )
    )
    beside = alt.layer(zero, dots).properties(
        width=300, height=alt.Step(36), title=alt.TitleParams("each task", fontSize=11)
    )
    return alt.hconcat(intervals, beside, title=title).resolve_scale(x="independent")


def _data(rows: list[dict[str, Any]]) -> Any:
    """Rows inside the chart, as Vega-Lite writes them."""
    return {"values": rows}


def _interval(row: dict[str, Any]) -> dict[str, Any]:
    percent, low, high = (row[f"relative_{part}percent"] for part in ("", "low_", "high_"))
    return {
        "metric": row["metric"], "verdict": row["verdict"], "reason": row["reason"], "percent": percent, "low": low,
        "high": high, "shown": _percent(percent),
    }  # fmt: skip


def _task(row: dict[str, Any]) -> dict[str, Any]:
    percent = row["relative_percent"]
    return {
        "metric": row["metric"], "task": _safe(row["task"]), "percent": percent,
        "shown": "" if percent is None else _percent(percent),
    }  # fmt: skip


def _percent(value: float) -> str:
    if value == 0:
        return "0 %"
    return f"{value:+,.0f} %" if abs(value) >= 100 else f"{value:+.1f} %"


def _safe(text: str) -> str:
    """A name from a stream, spelled out and without what would end a script element."""
    from analytics.render import visible

    shown = visible(text).replace("<", "‹").replace(">", "›")
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"
