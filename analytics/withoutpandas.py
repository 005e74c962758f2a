"""Keeps pandas out of runlake's own processes.

pyarrow loads it, where it is installed, with the first array it makes of Python values, to see whether they are
pandas's. That takes a second of CPU and 30 MiB, and nothing here is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Refusal:
    """Finds pandas before the import system does, and cannot load it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec("pandas", self) if name == "pandas" else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        raise ModuleNotFoundError("runlake's command line does without pandas", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never called: no module is made."""


def hide_pandas() -> None:
    """For processes that are runlake's alone: the command line and its workers. In any other, pandas is its owner's."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Refusal())


def show_pandas() -> None:
    """Takes that back: Spark's Python side does nothing without pandas."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Refusal)]
