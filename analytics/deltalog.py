"""The files of a version of a lake, read from its Delta log as JSON: 1 ms, where the Delta library takes 60 to load.

Only what needs no more than that: a log that is whole from version 0, has no checkpoint, and asks nothing of its
readers. Any other is the Delta library's to read (`analytics.commits`), and to find fault with.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

from analytics import places
from analytics.lakefiles import WrittenFile
from analytics.places import Place

MOST_COMMITS = 200  # a checkpoint is soon faster
_COMMIT = re.compile(r"(\d{20})\.json")


def read_log(root: Place, version: int | None) -> tuple[int, tuple[WrittenFile, ...]] | None:
    """The version asked for (None: the newest) and its files; None where the Delta library has to look."""
    names = places.tags_in(root / "_delta_log")
    commits = sorted(int(found[1]) for name in names if (found := _COMMIT.fullmatch(name)))
    is_whole = commits == list(range(len(commits))) and 0 < len(commits) <= MOST_COMMITS
    if not is_whole or any("checkpoint" in name for name in names):
        return None
    last = commits[-1] if version is None else version
    if not 0 <= last < len(commits):
        return None
    live: dict[str, WrittenFile] = {}
    try:
        wanted = {name: names[name] for name in (f"{number:020d}.json" for number in commits[: last + 1])}
        for text in places.texts(root / "_delta_log", wanted):
            for line in text.splitlines():
                if line and not _apply(json.loads(line), live):
                    return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return last, in_order(live.values())


def in_order(files: Any) -> tuple[WrittenFile, ...]:
    """Files in the order in which their rows came in."""
    return tuple(sorted(files, key=lambda f: (f.order_key, f.relative)))


def _apply(action: dict[str, Any], live: dict[str, WrittenFile]) -> bool:
    """One action of a commit; False where it says what only the Delta library understands."""
    if "protocol" in action:
        return bool(action["protocol"]["minReaderVersion"] == 1)
    if "remove" in action:
        live.pop(unquote(action["remove"]["path"]), None)
    elif "add" in action:
        add = action["add"]
        path = unquote(add["path"])
        parts = add["partitionValues"]
        rows = json.loads(add["stats"])["numRecords"]
        live[path] = WrittenFile(path, parts["record"], parts["wire"], rows, add["size"])
        return add.get("deletionVector") is None
    return True
