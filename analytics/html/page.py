"""One file with everything: the report of a lake, or the timeline of one run."""
# ruff: noqa: PLC0415 — what a page needs beside the standard library is imported when one is made

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics import __version__, ownreports
from analytics.errors import UsageError
from analytics.html import sections, tables, timelines
from analytics.html.board import altair, label, unit
from analytics.html.charts import draw, requests_spec
from analytics.html.kinds import MOST_POINTS
from analytics.html.sections import Part, Section
from analytics.pictures import Picture, pictures
from analytics.render import visible, visible_lines
from analytics.rows import rows_of
from analytics.values import as_json

if TYPE_CHECKING:
    from analytics.api import Lake
    from analytics.sqlfiles import SqlFile

# Vega's expressions are read by its interpreter (ast), so nothing needs unsafe-eval
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
TILES = (
    ("runs", "runs"), ("closed_runs", "read to their end"), ("events", "events"), ("input_tokens", "input tokens"),
    ("output_tokens", "output tokens"), ("cost_usd", "cost, as recorded"), ("tool_calls", "tool calls"),
    ("denied_calls", "denied calls"), ("refusals", "refused lines"),
)  # fmt: skip
_ESCAPES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    b"\xe2\x80\xa8": rb"\u2028",
    b"\xe2\x80\xa9": rb"\u2029",
}
_UNSAFE = re.compile(rb"[<>&]|\xe2\x80[\xa8\xa9]")


@dataclass(slots=True)
class Question:
    """What a page is about: which runs, and what was set for reports of one's own."""

    filters: dict[str, Any] = field(default_factory=dict)
    where: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def said(self) -> list[str]:
        """The filters in words."""
        words = {"since": "since {}", "until": "until {}", "wire": "wire {}", "run": "run {}"}
        said = [words[name].format(value) for name, value in self.filters.items() if value is not None]
        said += [] if self.where is None else [f"where {self.where}"]
        return said + [f"{name} = {value}" for name, value in self.values.items()]


@dataclass(slots=True)
class Page:
    """A page as it is put together: its data, its body, its contents."""

    data: dict[str, Any] = field(default_factory=lambda: {"tables": {}, "charts": [], "runs": {}})
    body: list[str] = field(default_factory=list)
    contents: list[tuple[str, str]] = field(default_factory=list)

    def html(self, title: str, head: str) -> Iterator[bytes]:
        """The file, in pieces."""
        contents = "".join(f'<a href="#{escape(key)}">{escape(text)}</a>' for key, text in self.contents)
        nav = f'<nav aria-label="Contents">{contents}</nav>' if contents else ""
        yield (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="color-scheme" content="light dark">\n<title>{escape(title)}</title>\n'
            f"<style>\n{_asset('report.css')}</style>\n<body>\n{head}\n"
            f'<noscript><p class="note">Tables and pictures are drawn by scripts inside this file; allow them.</p>'
            f'</noscript>\n<div class="frame{"" if contents else " alone"}">{nav}<main>\n'
        ).encode("utf-8", "backslashreplace")
        for part in self.body:
            yield part.encode("utf-8", "backslashreplace")
        yield b'</main></div>\n<dialog id="run"></dialog>\n<script type="application/json" id="data">'
        yield inert(self.data)
        yield b"</script>\n"
        yield f"<script>{library()}</script>\n<script>\n{_asset('report.js')}</script>\n".encode()


def inert(data: Any) -> bytes:
    """JSON that ends no script element and opens none, whatever its texts are."""
    return _UNSAFE.sub(lambda hit: _ESCAPES[hit[0]], as_json(data))


def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from vl-convert: nothing is fetched."""
    altair()
    try:
        import vl_convert
    except ImportError:
        raise UsageError("Pages need vl-convert. Install it with `pip install 'runlake[report]'`.") from None
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")  # in a text of it; vl-convert means it for a script element


def _asset(name: str) -> str:
    return (files("analytics.html") / name).read_text(encoding="utf-8")


def write_report(lake: Lake, out: Path, names: Sequence[str], by: str | None, question: Question) -> int:
    """Writes the report of a lake; its bytes. Without names: the sections of `sections`, then all other reports."""
    library_is_there()
    if question.where is not None and len(names) != 1:
        raise UsageError("--where is a condition on one report's columns: name that report.")
    page = Page()
    chosen = [_named(lake, name, by) for name in names]
    parts = {part.report for section in sections.SECTIONS for part in section.parts}
    runs = timelines.chosen(lake, question.filters)
    page.data["runs"] = timelines.timelines(lake, runs)
    page.data["requests"] = requests_spec()
    page.data["lake"] = visible(str(lake.path))
    for section in chosen or sections.SECTIONS:
        _section(page, lake, section, question)
    if not names:
        _own(page, lake, parts, question)
        _others(page, lake, parts, question)
    _foot(page)
    return _write(out, page.html("runlake report", _head(lake, question, len(page.data["runs"]))))


def library_is_there() -> None:
    """Fails before any question is asked, not after."""
    altair()
    try:
        import vl_convert  # noqa: F401
    except ImportError:
        raise UsageError("Pages need vl-convert. Install it with `pip install 'runlake[report]'`.") from None


def write_run(lake: Lake, run: str, out: Path, *, limit: int, text_chars: int = 2000) -> int:
    """Writes the timeline of one run as a page; its bytes."""
    library_is_there()
    page = Page()
    page.data["runs"] = {run: timelines.one(lake, run, limit=limit, text_chars=text_chars)}
    page.data["requests"], page.data["lake"], page.data["only"] = requests_spec(), visible(str(lake.path)), run
    page.body.append('<section id="timeline"></section>\n')
    head = f"<header><h1>{escape(visible(run))}</h1><p>{escape(_origin(lake))}</p></header>"
    return _write(out, page.html(f"Run {visible(run)}", head))


def _write(out: Path, pieces: Iterable[bytes]) -> int:
    from analytics.export import sink

    size = 0
    with sink(out) as to:
        for piece in pieces:
            size += to.write(piece)
    return size


def _origin(lake: Lake) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return f"Version {lake.version} of the lake {visible(lake.path.name)}; made {now} UTC by runlake {__version__}."


def _head(lake: Lake, question: Question, told: int) -> str:
    said = question.said()
    chips = "".join(f'<span class="chip">{escape(visible(text))}</span>' for text in said)
    only = f'<p class="chips">Only {chips}</p>' if said else ""
    many = f" {told:,} {'run has' if told == 1 else 'runs have'} a timeline in this file." if told else ""
    return f"<header><h1>runlake report</h1><p>{escape(_origin(lake))}{many}</p>{only}</header>"


def _named(lake: Lake, name: str, by: str | None) -> Section:
    file = lake.catalog.file(name, by)
    return sections.section_of(f"{name}_by_{by}" if by else name, file.title, _row(file))


def _row(file: SqlFile) -> str:
    return f"One row is {file.row}." if file.row else ""


def _section(page: Page, lake: Lake, section: Section, question: Question) -> None:
    page.contents.append((section.key, section.title))
    made = [_part(page, lake, part, question, alone=len(section.parts) == 1) for part in section.parts]
    is_empty = not any(rows for _, rows in made)
    page.body.append(
        f'<section id="{escape(section.key)}"><h2>{escape(section.title)}</h2>'
        f'<p class="about">{_prose(section.about)}</p>\n'
    )
    if section.key == "overview" and not is_empty:
        page.body.append(_tiles(page))
    if is_empty:
        page.body.append(f'<p class="nothing">{_prose(section.nothing)}</p>\n')
        page.body += [_sql(lake.catalog.file(part.report)) for part in section.parts]
    else:
        page.body += [html for html, _ in made]
    page.body.append("</section>\n")


def _part(page: Page, lake: Lake, part: Part, question: Question, *, alone: bool = False) -> tuple[str, int]:
    """One report as HTML, and how many rows it has. Its rows and pictures go into the page's data."""
    file = lake.catalog.file(part.report)
    relation = lake.report(part.report, where=question.where, set=question.values, **question.filters)
    drawn = pictures(file.picture) if part.has_picture else ()
    with lake.naming(part.report):
        held = tables.hold(rows_of(relation, are_few=lake.has_few_events), max(part.rows, MOST_POINTS if drawn else 0))
    heading = "" if alone else f"<h3>{escape(file.title)}</h3>"
    if not held.total:
        return f'<article>{heading}<p class="nothing">No rows.</p>{_sql(file)}</article>\n', 0
    figures = [_figure(page, file, picture, held) for picture in drawn]
    body = f'<div class="figures">{"".join(figures)}</div>' if figures else ""
    held.rows = held.rows[: part.rows]
    if part.report not in page.data["tables"]:
        page.data["tables"][part.report] = tables.table(held)
    body += f'<div class="table" data-table="{escape(part.report)}"></div>' if part.has_table else (
        f'<details class="more"><summary>As a table</summary><div class="table" data-table="{escape(part.report)}">'
        "</div></details>"
    )  # fmt: skip
    return f'<article id="r-{escape(part.report)}">{heading}{body}{_sql(file)}</article>\n', held.total


def _figure(page: Page, file: SqlFile, picture: Picture, held: tables.Held) -> str:
    made = draw(picture, held.fields, held.rows, file, on_page=True)
    notes = " ".join(made.notes)
    caption = f"<figcaption>{escape(_caption(file, picture))}</figcaption>"
    if made.chart is None:
        return f'<figure>{caption}<p class="nothing">Nothing to draw. {escape(notes)}</p></figure>'
    page.data["charts"].append(made.chart.to_dict())
    place = len(page.data["charts"]) - 1
    kind = ' class="wide"' if picture.kind in ("timeline", "column", "line") and len(picture.columns) > 2 else ""
    return (
        f"<figure{kind}>{caption}"
        f'<div class="chart" data-chart="{place}" data-report="{escape(file.name)}" data-marks="{made.marks}"></div>'
        f'<p class="notes">{escape(notes)}</p></figure>'
    )  # fmt: skip


def _caption(file: SqlFile, picture: Picture) -> str:
    if picture.kind == "timeline":
        return file.title
    if picture.kind == "histogram":
        of = {"usd": "cost", "ms": "duration"}.get(unit(picture.columns[0]), label(picture.columns[0]).lower())
        return f"{label(picture.columns[2])} by {of}, on a logarithmic axis"
    if picture.kind == "range":
        return (
            f"{label(picture.columns[1])} to {label(picture.columns[2]).lower()} by {label(picture.columns[0]).lower()}"
        )
    said = f"{label(picture.columns[1])} by {label(picture.columns[0]).lower()}"
    return f"{said} and {label(picture.columns[2]).lower()}" if len(picture.columns) > 2 else said


def _prose(text: str) -> str:
    """Our own sentences; what stands in backticks is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _sql(file: SqlFile) -> str:
    """Where the figures come from: the text of the file, as it runs."""
    name, _, by = file.name.partition("_by_")
    command = (
        f"runlake report {name} --by {by}" if by and file.name in _grouped(name, by) else f"runlake report {file.name}"
    )
    notes = "".join(
        f"<dt>{word}</dt><dd>{escape(text)}</dd>"
        for word, text in (("One row", file.row), ("Unknown", file.unknown), ("Not counted", file.not_counted))
        if text
    )
    return (
        f'<details class="sql"><summary>What it means, and its SQL</summary><dl>{notes}<dt>Command</dt>'
        f"<dd><code>{escape(command)}</code></dd></dl><pre>{escape(visible_lines(file.text))}</pre></details>"
    )


def _grouped(name: str, by: str) -> tuple[str, ...]:
    from analytics.catalog import built_in

    return (f"{name}_by_{by}",) if name in built_in() else ()


def _tiles(page: Page) -> str:
    """The sum of the overview, large."""
    held = page.data["tables"]["overview"]
    names = [column["n"] for column in held["c"]]
    row = dict(zip(names, held["r"][-1], strict=True))
    page.data["tiles"] = [[names.index(name), title] for name, title in TILES if name in row]
    return '<div class="tiles" data-tiles="overview"></div>\n'


def _own(page: Page, lake: Lake, done: set[str], question: Question) -> None:
    """One's own reports, each with a section."""
    for name, file in lake.catalog.own.items():
        done.add(name)
        section = sections.section_of(name, file.title, _row(file))
        try:
            ownreports.bound(file, question.values)
        except UsageError as error:  # a parameter nobody gave: the rest of the page is none the worse
            page.contents.append((section.key, section.title))
            page.body.append(
                f'<section id="{section.key}"><h2>{escape(section.title)}</h2><p class="nothing">{escape(str(error))}'
                f"</p>{_sql(file)}</section>\n"
            )
            continue
        _section(page, lake, section, question)


def _others(page: Page, lake: Lake, done: set[str], question: Question) -> None:
    """The reports that no section has, folded, with their first rows."""
    page.contents.append(("others", "All other reports"))
    about = f"At most {sections.OTHER_ROWS} rows each; `runlake report NAME --format csv` has all."
    page.body.append(f'<section id="others"><h2>All other reports</h2><p class="about">{_prose(about)}</p>\n')
    empty = []
    for name, file in lake.catalog.reports.items():
        if name in done or name in sections.LEFT_OUT:
            continue
        html, rows = _part(page, lake, Part(name, rows=sections.OTHER_ROWS, has_picture=False), question, alone=True)
        if not rows:
            empty.append(name)
            continue
        page.body.append(
            f'<details class="other"><summary><b>{escape(file.title)}</b> <span>{escape(name)}, {rows:,} '
            f"{'row' if rows == 1 else 'rows'}</span></summary>{html}</details>\n"
        )
    left = "; ".join(f"{name} ({why})" for name, why in sections.LEFT_OUT.items())
    nothing = f"Without rows: {', '.join(empty)}. " if empty else ""
    page.body.append(f'<p class="note">{_prose(nothing)}Not on this page: {_prose(left)}.</p></section>\n')


def _foot(page: Page) -> None:
    page.body.append(
        "<footer><p>– is unknown: the record did not say. ≥ is a lower bound: the stream was cut, or a record left a "
        "number out. Times and days are UTC.</p></footer>\n"
    )
