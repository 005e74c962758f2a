"""Errors a person reads: one sentence with facts, ending in what to do about it.

Every error runlake raises on purpose is a `RunlakeError`; the command line prints its text and exits with its
`exit_code`, and anything else that reaches the command line is a defect of runlake.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Self


class RunlakeError(Exception):
    """Base of all errors with a remedy."""

    exit_code = 1

    @classmethod
    def from_os(cls, doing: str, path: str | Path, error: OSError) -> Self:
        """An operating system's refusal, with the remedy of the common ones."""
        hints = {
            errno.ENOSPC: "Free some space and run the same command again; what was committed before is intact.",
            errno.EDQUOT: "Free some of the quota and run the same command again; what was committed before is intact.",
            errno.EFBIG: "Raise the file-size limit (ulimit -f) and run the same command again.",
            errno.EACCES: "Check who owns it and its mode.",
            errno.EPERM: "Check who owns it and its mode.",
            errno.EROFS: "The file system is mounted read-only.",
        }
        number, words = error.errno, error.strerror or str(error)
        if number is not None:
            words = os.strerror(number)  # Arrow puts its own words around the system's
        inner = re.search(r"\(os error (\d+)\)", words)  # how the Delta library writes an errno, below coloured lines
        if number is None and inner is not None:
            number = int(inner[1])
            words = os.strerror(number)
        hint = hints.get(number or 0, "")
        return cls(f"Could not {doing} {path}: {words[:1].lower()}{words[1:]}. {hint}".rstrip())

    @classmethod
    def worker_lost(cls, root: str) -> RunlakeError:
        """A process of the pool was killed (by hand, or by the kernel for want of memory), or could not begin."""
        return cls(
            f"The ingest into {root} broke off: a worker process ended before its work was done, perhaps killed for "
            "want of memory. What was committed before is intact; run the same command again, with fewer --jobs if "
            "memory is short. A Python script that ingests must be a file, with the call under "
            "`if __name__ == '__main__':` (or jobs=1), since each worker runs its first lines again."
        )


class CannotWrite(RunlakeError):
    """The operating system does not let us write to the lake: no room, no right, a limit."""

    @classmethod
    def at(cls, doing: str, path: str | Path, error: OSError) -> CannotWrite:
        """What a file system or an object store refused."""
        return StoreError.from_store(doing, path, error) if "://" in str(path) else cls.from_os(doing, path, error)


class StoreError(CannotWrite):
    """An object store refuses a request, or does not answer."""

    @classmethod
    def from_store(cls, doing: str, path: str | Path, error: OSError) -> StoreError:
        """What it refused (see `objects.as_os_errors`), and what to look at."""
        hints = {
            errno.EACCES: "Check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, "
            "AWS_PROFILE) and what they may do there.",
            errno.ENOENT: "Check the name, AWS_REGION and AWS_ENDPOINT_URL.",
            errno.ETIMEDOUT: "Check AWS_ENDPOINT_URL and the network, and run the same command again.",
        }
        words = (error.strerror or str(error)).rstrip(".")
        again = "What was committed before is intact; run the same command again."
        return cls(f"Could not {doing} {path}: {words}. {hints.get(error.errno or 0, again)}")


class UsageError(RunlakeError):
    """The command line or the call asks for what does not exist."""

    exit_code = 2

    @classmethod
    def unknown_name(cls, what: str, name: str, available: Sequence[str]) -> UsageError:
        """A name that is none of the available ones; names the nearest, then all of them."""
        near = get_close_matches(name, available, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        listed = ", ".join(sorted(available)) or "none"
        return cls(f"There is no {what} {name!r}. {guess}Available: {listed}.")

    @classmethod
    def no_source(cls, given: Sequence[str]) -> UsageError:
        """Paths were given and not one of them names anything that exists."""
        return cls(f"Nothing to read at {', '.join(given)}. Give a file, a folder, a quoted glob, or - for stdin.")

    @classmethod
    def nothing_named(cls, offered: int, command: str) -> UsageError:
        """No path was given. `offered`: files that `command` would read."""
        files = "file" if offered == 1 else f"{offered:,} files"
        offer = f"`{command}` reads the {files} above. Else give" if offered else "Give"
        return cls(f"Nothing to read was named. {offer} files, folders, a quoted glob, or - for stdin.")

    @classmethod
    def no_agents(cls, looked_in: Sequence[str], variables: Sequence[str]) -> UsageError:
        """No agent has left a transcript where agents leave them."""
        return cls(
            f"No agent has left transcripts in {', '.join(looked_in)}. "
            f"Set {' or '.join(variables)} to where they are, or give a path."
        )


class LakeError(RunlakeError):
    """The lake folder is missing, foreign, broken, or of another schema version."""

    @classmethod
    def missing(cls, root: Path) -> LakeError:
        """No folder there."""
        return cls(f"There is no lake at {root}. Make one with `runlake ingest PATH --lake {root}`, or name another.")

    @classmethod
    def files_lost(cls, root: Path, lost: Sequence[str]) -> LakeError:
        """Data files that the newest version needs are missing or cut."""
        more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        return cls(
            f"The lake at {root} is damaged: {lost[0]}{more} was deleted or changed by something else than runlake. "
            "Put it back from a copy, or make the lake anew from its sources."
        )

    @classmethod
    def unfinished(cls, root: Path) -> LakeError:
        """A lake whose making was broken off before its first version."""
        return cls(
            f"The lake at {root} was never finished: its making was broken off. Run `runlake ingest` into it again."
        )

    @classmethod
    def foreign(cls, root: Path, seen: Sequence[str]) -> LakeError:
        """A folder with things in it that are not a lake's."""
        names = ", ".join(sorted(seen)[:3]) + (", …" if len(seen) > 3 else "")
        holds = f"it holds {names}" if names else "it is empty"
        return cls(f"The folder {root} is no lake ({holds}). Name a lake, or a new folder to make one in.")

    @classmethod
    def bad_path(cls, root: Path, why: str) -> LakeError:
        """A path the Delta or Parquet readers would misread."""
        return cls(f"A lake cannot stand at {str(root)!r}: {why}. Choose another folder.")

    @classmethod
    def schema_version(cls, root: Path, found: object, known: int, made_by: str) -> LakeError:
        """Written by a runlake whose columns differ from ours."""
        older = isinstance(found, int) and found < known
        remedy = "Ingest the sources into a new lake" if older else "Upgrade runlake"
        by = f"made by runlake {made_by}"
        return cls(f"The lake {root} has schema version {found} ({by}); this runlake reads {known}. {remedy}.")

    @classmethod
    def no_version(cls, root: Path, version: int, newest: int) -> LakeError:
        """A version that was never committed."""
        said = f"The lake {root} has no version {version}; its versions run from 0 to {newest}"
        return cls(f"{said}. See `runlake history`.")

    @classmethod
    def vacuumed(cls, root: Path, version: int, lost: int) -> LakeError:
        """A version whose files were deleted by a vacuum after compaction or replacement."""
        return cls(
            f"Version {version} of the lake {root} can no longer be read: {lost} of its files were deleted after their"
            " retention. Choose a later version; see `runlake history`."
        )

    @classmethod
    def damaged(cls, root: Path, what: str) -> LakeError:
        """The folder is a lake, but a part of it cannot be used."""
        remedy = "Restore it from a copy, or ingest the sources into a new lake"
        return cls(f"The lake {root} is damaged: {what}. {remedy}.")

    @classmethod
    def conflict(cls, root: Path, relative: str) -> LakeError:
        """A file to be replaced is no longer in the lake: another writer replaced it."""
        return cls(
            f"Another writer has already replaced {relative} in the lake {root}. Nothing was committed; run the same"
            " command again."
        )

    @classmethod
    def not_committed(cls, root: Path, words: str) -> LakeError:
        """The Delta transaction failed; the version before it holds."""
        return cls(
            f"The commit to the lake {root} failed: {words.strip().splitlines()[0]}. The version before it is intact;"
            " run the same command again."
        )

    @classmethod
    def crowded(cls, root: Path, tried: int) -> LakeError:
        """So many writers that this one never came first."""
        return cls(
            f"The commit to the lake {root} was overtaken by other writers {tried} times. What was committed before is"
            " intact; run the same command again, with fewer writers at once."
        )

    @classmethod
    def no_conditional_put(cls, root: str) -> LakeError:
        """A store without the one thing that keeps two writers from overwriting each other's commits."""
        return cls(
            f"A lake cannot stand at {root}: its store replaced an object though it was told not to (If-None-Match), so"
            " two writers could destroy each other's commits. Use a store with conditional writes."
        )

    @classmethod
    def overtaken(cls, root: Path, tried: int) -> LakeError:
        """Other writers read the same sources each time."""
        return cls(
            f"Other writers read the same sources into the lake {root} {tried} times while this ingest planned. What"
            " was committed is intact; run the same command again when they are done."
        )

    @classmethod
    def misfit(cls, relative: str, what: str) -> LakeError:
        """A file handed over for commit is not what its description says."""
        remedy = "Nothing was committed; run the same command again"
        return cls(f"The file {relative} cannot be committed: {what}. {remedy}.")


class Overtaken(LakeError):
    """Another writer has changed what a commit builds on. Nothing was committed; it has to be planned anew."""


class QueryFileError(RunlakeError):
    """A file of queries/ is missing or its header does not follow the order the others have."""

    @classmethod
    def no_folder(cls, looked: Sequence[Path]) -> QueryFileError:
        """The SQL files are part of the program; without them nothing can be asked."""
        places = ", ".join(map(str, looked))
        return cls(f"The folder of SQL files is missing (looked in {places}). Install runlake again.")

    @classmethod
    def unreadable(cls, path: Path | str, why: str) -> QueryFileError:
        """One file."""
        return cls(f"The SQL file {path} cannot be used: {why}. Install runlake again, or correct the file.")
