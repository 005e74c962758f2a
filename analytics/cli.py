"""The command line: `runlake`. Commands are thin and import what they need when they run.

stdout holds data, stderr what is said about it. Exit codes: 0 done, 1 failed (or a check found something), 2 asked
for what does not exist, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
from typing import Annotated

import typer

from analytics.commands import about, asking, filling, options
from analytics.commands.compare import compare
from analytics.commands.cost import cost
from analytics.commands.exporting import export
from analytics.commands.show import show
from analytics.commands.status import status
from analytics.errors import RunlakeError
from analytics.withoutpandas import hide_pandas

GRACE_SECONDS = 2.0
app = typer.Typer(
    name="runlake",
    help="From the JSONL streams of agent harnesses to a lake you can ask anything in SQL.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    filling.ingest, asking.report, asking.reports, asking.sql, asking.runs, show, compare, cost, asking.refused, status,
    filling.check, about.wires, about.schema, filling.history, filling.compact, export, about.version,
):  # fmt: skip
    app.command()(command)


@app.callback()
def before(
    lake: Annotated[str | None, typer.Option("--lake", metavar="DIR", help=options.LAKE_HELP)] = None,
    reports: options.ReportsOption = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,  # noqa: FBT002
) -> None:
    """From the JSONL streams of agent harnesses to a lake you can ask anything in SQL."""
    del debug  # taken out of the arguments by `run`, wherever it stands
    options.State.lake, options.State.reports = lake, reports


def run(arguments: list[str]) -> int:
    """One command; its exit code."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    debug = "--debug" in arguments[:end]
    arguments = [a for i, a in enumerate(arguments) if a != "--debug" or i >= end]
    try:
        code = app(args=arguments, prog_name="runlake", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if type(error).__name__ == "InterruptException" or str(error) == "Query interrupted":  # DuckDB's Ctrl-C
            return 130
        if debug:
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """The error as one sentence on stderr; its exit code."""
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # the parser's own: usage and a hint
        error.show()
        return int(error.exit_code)
    if isinstance(error, RunlakeError):
        code, text = error.exit_code, str(error)
    elif isinstance(error, BrokenPipeError):
        return 141
    elif isinstance(error, OSError) and error.errno is not None:
        code, text = 1, str(RunlakeError.from_os("write to", error.filename or "stdout", error))
    elif type(error).__module__.split(".")[0].lstrip("_") == "duckdb":
        from analytics.readsonly import explain  # noqa: PLC0415 (duckdb is loaded already)

        explained = explain(error)
        code, text = explained.exit_code, str(explained)
    else:
        code = 1
        what = f"{type(error).__name__}: {error}"
        text = f"runlake met what it did not expect ({what}). Run it again with --debug, and report what it prints."
    from analytics.render import visible  # noqa: PLC0415 (only errors need it)

    for line in f"Error: {text}".splitlines():
        print(visible(line), file=sys.stderr)  # noqa: T201
    return code


def _leave_on_interrupt() -> None:
    """Ctrl-C must end a query also while the main thread waits inside DuckDB, which may not look at signals."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)  # written by the C handler at once, whatever the main thread does

    def wait() -> None:
        while os.read(told, 1)[0] != signal.SIGINT:
            pass
        time.sleep(GRACE_SECONDS)
        os._exit(130)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """The console script."""
    if sys.stderr is None:  # closed by the caller, who wants to hear nothing
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("Error: stdout is closed. Give it a place to write to, such as /dev/null.", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    hide_pandas()
    atexit.register(gc.freeze)  # or Python looks through all that is left for cycles, which the exit frees anyway
    if not {"ingest", "compact"} & set(sys.argv[1:]):  # what only reads has nothing to bring to an end
        _leave_on_interrupt()
    sys.exit(run(sys.argv[1:]))
