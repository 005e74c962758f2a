"""runlake beside two programs that read the same files: their figures against the truth, and what they cost.

    python benchmarks/peers/compare.py --peers DIR [figures] [variants] [cases] [cost]

Not part of the tests: the peers (ccusage from npm, agentsview from PyPI, versions pinned in tools.py) are not
installed by it; without them it says how. It makes fake homes of coding agents in a scratch folder and runs all three
tools on them, with HOME, CLAUDE_CONFIG_DIR and CODEX_HOME there and a proxy that leads nowhere. It prints Markdown:

figures   the traps corpus, field by field
variants  the same corpus written or named otherwise
cases     the native cases that a home can hold
cost      wall time, CPU and memory for 400 sessions and 400 rollouts (293 MB)

It exits 1 if runlake differs from the truth, or a peer does and no note in notes.py says why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cost import Cost, commands, measure
from homes import VARIANTS, cases, make_traps, transcripts
from notes import UNEXPLAINED, explain
from tools import Agentsview, Ccusage, Figures, Runlake, Tool, find

PARTS = ("uncached input", "cache read", "cache write", "output")
BY_RUN = "all.tokens by run"


@dataclass(slots=True)
class Verdict:
    """Whether everything is as it should be."""

    good: bool = True


def with_sums(truth: dict[str, dict[str, float]]) -> Figures:
    """truth.json as figures, and what follows from it: the sums each way of adding up must give."""
    figures = {f"{agent}.{name}": value for agent, fields in truth.items() for name, value in fields.items()}
    claude, codex = truth["claude"], truth["codex"]
    total = sum(claude[name] for name in ("input", "output", "cache_create", "cache_read"))
    total += codex["input"] + codex["output"]
    figures |= {f"all.tokens by {what}": total for what in ("day", "model", "run")}
    return figures | {"claude.session list": claude["output"], "codex.session list": codex["output"]}


def parts(figures: Figures) -> Figures:
    """The disjoint parts over both agents, and the sum over runs."""
    got = figures.get
    cached = got("codex.cached", 0)
    four = (
        got("claude.input", 0) + got("codex.input", 0) - cached,
        got("claude.cache_read", 0) + cached,
        got("claude.cache_create", 0),
        got("claude.output", 0) + got("codex.output", 0),
    )
    return dict(zip(PARTS, four, strict=True)) | {BY_RUN: got(BY_RUN, 0)}


def differences(found: Figures, truth: Figures) -> set[str]:
    """The fields of the truth that the tool does not have or has otherwise."""
    return {name for name, value in truth.items() if found.get(name) != value}


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.10g}" if value % 1 else f"{value:,.0f}"


def judge(tool: Tool, where: str, found: Figures, truth: Figures, verdict: Verdict) -> tuple[str, ...]:
    """The explanations of a tool's differences, and what they mean for the exit status."""
    differing = differences(found, truth)
    why = explain(tool.name, where, differing) if differing else ()
    if (differing and tool.name == "runlake") or any(text.startswith(UNEXPLAINED) for text in why):
        verdict.good = False
    return why


def print_figures(scratch: Path, tools: tuple[Tool, ...], sizes: list[tuple[int, int]], verdict: Verdict) -> None:
    """The traps corpus in each size: one row a field, the reasons below."""
    for sessions, calls in sizes:
        home = scratch / f"traps-{sessions}-{calls}"
        truth = with_sums(make_traps(home, sessions, calls))
        found = {tool.name: tool.figures(home, work(scratch, home.name)) for tool in tools}
        print(f"\n### {sessions} + {sessions} runs, {calls} calls each\n")
        print("| field | truth |" + "".join(f" {tool.name} |" for tool in tools))
        print("| --- | ---: |" + " ---: |" * len(tools))
        for name, value in truth.items():
            cells = (mark(found[tool.name].get(name), value) for tool in tools)
            print(f"| {name} | {number(value)} |" + "".join(f" {cell} |" for cell in cells))
        print()
        for tool in tools:
            for text in judge(tool, "traps", found[tool.name], truth, verdict):
                print(f"- {tool.name}: {text}")
        shutil.rmtree(home)


def mark(found: float | None, truth: float) -> str:
    return number(found) if found is None or found == truth else f"**{number(found)}**"


def print_matrix(
    head: str, rows: Iterator[tuple[str, Path, Figures, dict[str, Any]]], tools: tuple[Tool, ...], verdict: Verdict
) -> None:
    """One row a home: right, or what is wrong with the right value behind; then why."""
    print(f"| {head} |" + "".join(f" {tool.name} |" for tool in tools))
    print("| --- |" + " --- |" * len(tools))
    reasons: list[str] = []
    right = dict.fromkeys((tool.name for tool in tools), 0)
    count = 0
    for name, home, truth, answer in rows:
        count += 1
        cells = []
        for tool in tools:
            all_figures = tool.figures(home, work(home.parent, f"{name}-{tool.name}"))
            found = parts(all_figures) if set(truth) <= {*PARTS, BY_RUN} else all_figures
            wrong = [one for one in truth if found.get(one) != truth[one]]
            right[tool.name] += not wrong
            cells.append(
                ", ".join(f"{one} {number(found.get(one))} ({number(truth[one])})" for one in wrong) or "right"
            )
            why = judge(tool, name, found, truth, verdict)
            reasons.extend(f"- {tool.name}, {name}: {text}" for text in why)
        told = f"{name} (reports {', '.join(map(str, answer['reports']))})" if answer.get("reports") else name
        print(f"| {told} | " + " | ".join(cells) + " |")
        shutil.rmtree(home)
    print(f"| right of {count} | " + " | ".join(str(right[tool.name]) for tool in tools) + " |\n")
    print("\n".join(reasons))


def variant_homes(scratch: Path) -> Iterator[tuple[str, Path, Figures, dict[str, Any]]]:
    for variant in VARIANTS:
        home = scratch / "variants" / variant.name
        truth = with_sums(make_traps(home, 3, 6))
        variant.change(home)
        yield variant.name, home, parts(truth), {}


def case_homes(scratch: Path) -> Iterator[tuple[str, Path, Figures, dict[str, Any]]]:
    for name, home, answer in cases(scratch / "cases"):
        corpus = answer["corpus"]
        columns = ("uncached_input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
        truth = dict(zip(PARTS, (corpus[column] or 0 for column in columns), strict=True))
        yield name, home, truth | {BY_RUN: sum(truth.values())}, answer


def work(folder: Path, name: str) -> Path:
    """A folder for what the tools keep of one home."""
    made = folder / f"work-{name}"
    made.mkdir(parents=True, exist_ok=True)
    return made


def print_cost(scratch: Path, tools: tuple[Runlake, Ccusage, Agentsview], given: argparse.Namespace) -> None:
    """The table of costs, each with its ratio to one full ccusage report."""
    home = scratch / "large"
    make_traps(home, given.sessions, given.calls)
    files = transcripts(home)
    size = sum(file.stat().st_size for file in files)
    plan = commands(work(scratch, "large"), tools[1], tools[2])
    # what is compared closest in time; agentsview's sync takes as long as all the rest together
    ours = [command for command in plan if not command.name.startswith("agentsview")]
    costs = measure(home, ours, given.repeat, given.patience)
    costs += measure(home, [command for command in plan if command not in ours], given.repeat, given.patience)
    print(
        f"\n{len(files)} files, {size / 1e6:.1f} MB ({given.sessions} sessions, {given.calls} calls each); "
        f"{os.cpu_count()} cores; best of {given.repeat}. `others`: what else used the cores; over 10 % the times are "
        "too long\n"
    )
    print(
        "| command | wall s | × ccusage | CPU s | × ccusage | MB/s per core | largest process MiB | all MiB | others |"
    )
    print("| --- |" + " ---: |" * 8)
    for cost in costs:
        print(cost_row(cost, costs[0], size))


def cost_row(cost: Cost, base: Cost, size: int) -> str:
    # only these go over all bytes; for the others a rate would mean nothing
    reads = cost.name.startswith("ccusage") or "new lake" in cost.name or "new database" in cost.name
    return (
        f"| {cost.name} | {cost.wall:.2f} | {cost.wall / base.wall:.2f} | {cost.cpu:.2f} | {cost.cpu / base.cpu:.2f} "
        f"| {f'{size / 1e6 / cost.cpu:.0f}' if reads else ''} | {cost.largest_mib:.0f} | {cost.all_mib:.0f} "
        f"| {cost.others:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = ("figures", "variants", "cases", "cost")
    parser.add_argument("sections", nargs="*", help="which; all by default", metavar="SECTION")
    parser.add_argument("--peers", type=Path, help="the folder where the peers were installed")
    parser.add_argument("--ccusage", type=Path, help="the program ccusage")
    parser.add_argument("--agentsview", type=Path, help="the program agentsview")
    parser.add_argument("--sessions", type=int, default=400, help="of cost: session files, and as many rollouts")
    parser.add_argument("--calls", type=int, default=116, help="of cost: tool calls of each")
    parser.add_argument("--repeat", type=int, default=3, help="of cost: repetitions")
    parser.add_argument("--patience", type=float, default=0, help="of cost: seconds to wait for idle cores, each time")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(sections):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    wanted = given.sections or sections
    tools = (
        Runlake(),
        Ccusage(find("ccusage", given.ccusage, given.peers)),
        Agentsview(find("agentsview", given.agentsview, given.peers)),
    )
    verdict = Verdict()
    with tempfile.TemporaryDirectory(prefix="runlake-peers-") as folder:
        scratch = Path(folder)
        if "figures" in wanted:
            print("\n## Figures")
            print_figures(scratch, tools, [(3, 6), (40, 20)], verdict)
        if "variants" in wanted:
            print("\n## Variants\n")
            print_matrix("variant", variant_homes(scratch), tools, verdict)
        if "cases" in wanted:
            print("\n## Cases\n")
            print_matrix("case", case_homes(scratch), tools, verdict)
        if "cost" in wanted:
            print("\n## Cost")
            print_cost(scratch, tools, given)
    raise SystemExit(0 if verdict.good else 1)


if __name__ == "__main__":
    main()
