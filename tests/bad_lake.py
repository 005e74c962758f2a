"""All bad input of the tables in one folder, with what a lake of it must say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bad_files import FILE_NAMES, FILES, NAMED, RUN_IDS, RUNS, STRANGERS, quoted
from bad_hosts import HOSTS
from bad_lines import LINES, ODD_NUMBERS, TIMED, TIMES, TIMES_MS

from analytics.refusals import NAMES


class BadLake:
    """The files, and the answers: refusals by reason, skipped files, runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reasons: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}  # file → why
        self.refused: set[str] = set()
        self.runs: dict[str, tuple[int, str | None]] = {}  # run → lines that are events, completeness where decided
        self.paths: dict[bytes, str] = {}  # file name as bytes → its run
        for part in ("lines", "times", "files", "strangers", "runs", "ids", "names"):
            (folder / part).mkdir(parents=True)
        self.add_lines()
        self.add_files()
        self.add_runs()

    def write(self, place: str, data: bytes) -> str:
        """A file of the folder; returns its path."""
        path = self.folder / place
        path.write_bytes(data)
        return str(path)

    def add_lines(self) -> None:
        """Each bad line between two good ones, each odd number, each bad time."""
        for n, row in enumerate(LINES):
            for form, host in HOSTS.items():
                words = row.answer(form).split(" + ")
                run = f"line-{n}-{form}"
                self.write(
                    f"lines/{run}.jsonl", b"".join(host.stream(run, row.make(host, run), is_event="event" in words))
                )
                self.reasons.update(word for word in words if word in NAMES)
        for n, (_, form, line, _) in enumerate(ODD_NUMBERS):
            host, run = HOSTS[form], f"number-{n}"
            self.write(f"lines/{run}.jsonl", b"".join(host.stream(run, host.fill(line, run), is_event=True)))
        moments = [(row, form) for row in TIMES for form in TIMED] + [(row, "platonic-core") for row in TIMES_MS]
        for n, (row, form) in enumerate(moments):
            host, run, answer = HOSTS[form], f"time-{n}", row.answer(form)
            middle = host.line(run, time=row.value)
            self.write(f"times/{run}.jsonl", b"".join(host.stream(run, middle, is_event=answer not in NAMES)))
            self.reasons.update([answer] if answer in NAMES else [])

    def add_files(self) -> None:
        """Each bad file whose answer needs no setting, and the files that are none of ours."""
        for n, row in enumerate(FILES):
            for form in row.forms if not row.settings else ():
                host, run = HOSTS[form], f"file-{n}-{form}"
                data = row.make(host, run)
                outcome = row.outcome(form, host, data)
                path = self.write(f"files/{run}{row.suffix}", data)
                self.reasons.update(outcome.reasons)
                if outcome.skipped is not None:
                    self.skipped[path] = outcome.skipped
                if outcome.is_refused:
                    self.refused.add(path)
        for n, (data, reason) in enumerate(STRANGERS.values()):
            self.skipped[self.write(f"strangers/{n}.jsonl", data)] = reason

    def add_runs(self) -> None:
        """Runs that are numbered or closed in odd ways, runs of odd ids, files of odd names."""
        for n, row in enumerate(RUNS):
            self.runs |= row.runs
            for at, data in enumerate(row.files):
                self.write(f"runs/{n}-{at}.jsonl", data)
        for n, run_id in enumerate(RUN_IDS):
            for form in NAMED:
                host, run = HOSTS[form], f"{run_id} {form}"
                self.write(f"ids/{n}-{form}.jsonl", b"".join(host.good(quoted(run))))
                self.runs[run] = (len(host.good("r")), None)
        for n, name in enumerate(FILE_NAMES):
            run = f"name-{n}"
            (self.folder / "names").joinpath(name.decode("utf-8", "surrogateescape")).write_bytes(
                b"".join(HOSTS["metaharness"].good(run))
            )
            self.runs[run] = (3, "truncated")
            self.paths[name] = run
