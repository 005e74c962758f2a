"""The console script. It loads nothing by itself, since each process of a pool runs the script's first lines again."""

from __future__ import annotations

import sys


def main() -> None:
    """`runlake`."""
    try:
        from analytics.cli import main as run  # noqa: PLC0415 (0.1 s)

        run()
    except KeyboardInterrupt:  # while it loads or leaves
        sys.exit(130)
