"""runlake: from the JSONL streams of agent harnesses to a lake you can ask anything in SQL.

`open_lake(path)` gives a `Lake`. Everything heavy is imported on first use, so `import analytics` is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.api import Lake, open_lake

    __version__: str

__all__ = ["Lake", "__version__", "open_lake"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (15 ms)

        try:
            return version("runlake")
        except PackageNotFoundError:
            return "0+unknown"
    if name in __all__:
        from analytics import api  # noqa: PLC0415 (pulls in duckdb and pyarrow)

        return getattr(api, name)
    raise AttributeError(f"module 'analytics' has no attribute {name!r}")
