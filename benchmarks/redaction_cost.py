"""What redaction costs of an ingest's CPU: the same corpus through the worker with and without it.

usage: redaction_cost.py PATH… [--repeat 3] [--at-least MB] [--secrets SHARE…]

PATH: a folder of streams, a stream, or a list of files (one path a line, ending in .txt). A corpus smaller than
--at-least is read again and again until it is as large. --secrets 0.01 0.1 measures copies of the corpus in which that
share of the JSON lines has a made-up secret put into it as well. With and without take turns, so that a noisy machine
harms both alike; CPU seconds of this process, the best of the repeats, without start-up.
"""

from __future__ import annotations

import argparse
import random
import re
import string
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from inprocess import cpu_of, files_at, through_worker

TEXT = re.compile(rb'"(?:text|content|output|message|stdout|detail|summary|delta)":"[^"\\]{2,40} ([^"\\]{10,})')
ALNUM = string.ascii_letters + string.digits


def measured(files: list[Path], repeat: int) -> tuple[float, float, int]:
    """CPU seconds with redaction and without, the best of each; how many secrets were replaced."""
    best = {True: float("inf"), False: float("inf")}
    replaced = 0

    def read(folder: Path, *, redact: bool) -> None:
        nonlocal replaced
        replaced = max(replaced, through_worker(files, folder, redact=redact))

    for _ in range(repeat):
        for redact, least in list(best.items()):
            best[redact] = min(least, cpu_of(partial(read, redact=redact)))
    return best[True], best[False], replaced


MAKERS: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: "gh" + "p_" + "".join(rng.choices(ALNUM, k=36)),
    lambda rng: "s" + "k-" + "".join(rng.choices(ALNUM, k=48)),
    lambda rng: "Bearer " + "".join(rng.choices(ALNUM, k=40)),
    lambda rng: "SERVICE_API" + "_KEY=" + "".join(rng.choices(ALNUM, k=24)),
    lambda rng: "postgres://plume:" + "".join(rng.choices(ALNUM, k=12)) + "7@db.example/app",
    lambda rng: '{\\"pass' + 'word\\":\\"' + "".join(rng.choices(ALNUM, k=12)) + '7\\"}',
)


def planted(files: list[Path], share: float, folder: Path) -> list[Path]:
    """Copies of the files in which a share of the lines has a secret inside a text of theirs."""
    rng = random.Random(7)  # noqa: S311 (the same secrets each time)
    made: list[Path] = []
    for number, file in enumerate(files):
        lines = file.read_bytes().split(b"\n")
        for at, line in enumerate(lines):
            if rng.random() < share and (text := TEXT.search(line)):
                secret = rng.choice(MAKERS)(rng).encode()
                lines[at] = line[: text.start(1)] + secret + b" " + line[text.start(1) :]
        copy = folder / f"{number:05d}{file.suffix}"
        copy.write_bytes(b"\n".join(lines))
        made.append(copy)
    return made


def told(name: str, files: list[Path], repeat: int) -> None:
    """One line of the answer."""
    with_, without, replaced = measured(files, repeat)
    size = sum(file.stat().st_size for file in files)
    share = 100 * (with_ - without) / with_
    print(
        f"{name}: {size / 1e6:.0f} MB, {replaced:,} secrets replaced; with redaction {with_:.2f} CPU s, without "
        f"{without:.2f}; redaction is {share:.1f} % of it, {(with_ - without) / size * 1e9:.2f} ns a byte"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--at-least", type=float, default=100.0, metavar="MB")
    parser.add_argument("--secrets", type=float, nargs="*", default=[], metavar="SHARE")
    args = parser.parse_args()
    files = files_at(args.paths)
    size = sum(file.stat().st_size for file in files)
    files *= max(1, round(args.at_least * 1e6 / size))
    told(", ".join(path.name for path in args.paths), files, args.repeat)
    for share in args.secrets:
        with tempfile.TemporaryDirectory() as folder:
            told(f"the same, secrets in {share:.1%} of the lines", planted(files, share, Path(folder)), args.repeat)


if __name__ == "__main__":
    main()
