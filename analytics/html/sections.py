"""What stands on the page and in which order: one list, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One report on the page: its name (`x_by_y` for a grouped one), and how much of it is shown."""

    report: str
    rows: int = 500
    has_picture: bool = True
    has_table: bool = True


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what it is about, its reports, and what to say where they have no rows."""

    key: str
    title: str
    about: str
    parts: tuple[Part, ...]
    nothing: str


SECTIONS: tuple[Section, ...] = (
    Section(
        "overview", "Overview", "Each kind of stream, then all of them. Work that two streams show counts once.",
        (Part("overview", has_picture=False),), "The lake holds no runs that these filters select.",
    ),
    Section(
        "usage", "Tokens and cost over time",
        "By day (UTC) and model. Cost is the vendor's own figure; most wires carry none.",
        (Part("tokens", rows=1000), Part("token_usage", has_picture=False)),
        "No record of these runs says how many tokens were used.",
    ),
    Section(
        "cache", "Cache", "How much of the input came out of the cache.",
        (Part("cache_share"), Part("tokens_by_day", has_picture=False)),
        "No record of these runs says how many tokens were used.",
    ),
    Section(
        "runs", "What runs cost, and how long they take",
        "Runs that do not say are in no column: the data-quality notes count them.",
        (
            Part("run_costs", has_table=False), Part("run_durations", has_table=False),
            Part("run_distribution_by_measure", has_picture=False), Part("run_distribution", has_picture=False),
        ),
        "No run says what it cost or how long it took.",
    ),
    Section(
        "denials", "Denied calls", "Distinct calls that a policy, a person or a hook denied; by tool and by reason.",
        (Part("denials_by_tool"), Part("denials_by_reason"), Part("denials", has_picture=False)),
        "No record shows a denied call. Runs whose stream cannot speak of decisions are counted under data quality.",
    ),
    Section(
        "unfinished", "Calls without a result", "Calls that were interrupted or never got a result, by tool.",
        (Part("unfinished_by_tool"),),
        "Every call has a result, as far as the streams show results.",
    ),
    Section(
        "limits", "Rate limits",
        "Each bar is one window of one limit, coloured by how full it got; ▼ marks a wall that was hit.",
        (Part("limit_windows"),),
        "No rate limit was seen: Harness Lab, platonic-core and Claude Code's session files carry none, so whether "
        "limits were near is not known. Captures and metaharness streams carry them.",
    ),
    Section(
        "tools", "Tools", "How long calls take, and which fail. Times need both ends of a call.",
        (Part("slow_tools"), Part("failing_tools")),
        "No tool was called.",
    ),
    Section(
        "completeness", "Completeness",
        "Whether a stream was read to its end: a count of a run that was cut is a lower bound.",
        (Part("completeness"),), "The lake holds no runs that these filters select.",
    ),
    Section(
        "refusals", "Refused lines", "Lines and files that could not be read as what they claim to be, by reason.",
        (Part("refusals"),), "No line was refused.",
    ),
    Section(
        "quality", "Data quality",
        "What is unknown and what is a lower bound, and the share of runs it touches. – is unknown, never zero; ≥ 3 is "
        "at least three.",
        (Part("data_quality"), Part("coverage", has_picture=False)),
        "The lake holds no runs that these filters select.",
    ),
    Section(
        "list", "Runs", "One row per run, newest first. A run id leads to its timeline.",
        (Part("runs", rows=2000, has_picture=False),), "The lake holds no runs that these filters select.",
    ),
)  # fmt: skip

# of all other reports, the first rows
OTHER_ROWS = 200
LEFT_OUT = {
    "transcript": "a run's timeline shows it",
    "record_fields": "it reads every line again: `runlake report record_fields`",
}


def section_of(name: str, title: str, about: str) -> Section:
    """A section for one report by itself."""
    return Section(f"report-{name}", title, about, (Part(name),), "This report has no rows.")
