"""Secrets leave before anything is written: the two passes that apply the rules of `secret_rules`.

Almost no line holds a secret, so the cost is the cost of saying so: one scan over a whole block names the rows worth
a look, and only those meet the exact rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analytics import secret_words as words
from analytics.secret_rules import LABELS, RULES, SCANS, TORN_ANCHORS, TORN_END, Rule

if TYPE_CHECKING:
    import numpy as np

__all__ = ["LABELS", "RULES", "SCANS", "Redactor", "Rule"]

MAX_PASSES = 4
MAX_INNER_QUOTES = 8
_QUOTE = re.compile(r'(\\*+)"')


def _depth(backslashes: int) -> int:
    """How deep in JSON-in-JSON a quote behind so many backslashes stands: the number of trailing one bits."""
    return (~backslashes & (backslashes + 1)).bit_length() - 1


def _closing(text: str, start: int, backslashes: int, most_quotes: int | None) -> tuple[int, bool]:
    """Where the string from `start` on ends, and whether its own quote ends it (else an outer one, or nothing)."""
    depth = _depth(backslashes)
    for seen, quote in enumerate(_QUOTE.finditer(text, start)):
        if most_quotes is not None and seen > most_quotes:
            return start, False
        run = len(quote[1])
        found = _depth(run)
        if found < depth:
            return quote.start(), False
        if found == depth:
            return quote.start() + run - (2**depth - 1), True
    return len(text), False


def _without_torn(match: re.Match[str]) -> str:
    label = match.lastgroup or ""
    return f"{match[0][: match.start(label) - match.start()]}[REDACTED:{label}]"


class Redactor:
    """Applies RULES. `exempt_keys`: JSON keys that a wire declares to hold no secret, whatever they are called."""

    def __init__(self, exempt_keys: frozenset[str] = frozenset()) -> None:
        self.exempt_keys = exempt_keys
        self._series: Any = None

    def suspects(self, payloads: pa.StringViewArray) -> np.ndarray | None:
        """Indices of the rows that may hold a secret; a superset of those `json_line` changes. None: not one row.

        polars is loaded here and not above: the commands that only read a lake have no use for it.
        """
        if self._series is None:
            import polars as pl  # noqa: PLC0415

            self._series = pl.Series
        texts = self._series(payloads)
        hits = texts.str.contains(SCANS[0]) | texts.str.contains(SCANS[1])
        if not hits.any():
            return None
        rows: np.ndarray = hits.arg_true().to_numpy()
        return rows

    def json_line(self, line: str) -> tuple[str, int]:
        """The text with its secrets replaced, and how many; valid JSON stays valid JSON.

        Passes repeat until nothing changes, so that doing it again never changes anything.
        """
        total = 0
        for _ in range(MAX_PASSES):
            found = 0
            for rule in RULES:
                for anchor in rule.anchors:  # no any(): its generator took half of the time
                    if anchor in line:
                        line, count = self._apply(rule, line)
                        found += count
                        break
            total += found
            if not found:
                break
        return line, total

    def text(self, raw: bytes) -> tuple[bytes, int]:
        """The same for bytes that may be no JSON and no UTF-8: every byte that is no secret's stays as it is."""
        line, count = self.json_line(raw.decode("latin-1"))
        return (line.encode("latin-1"), count) if count else (raw, 0)

    def any_bytes(self, raw: bytes) -> tuple[bytes, int]:
        """The same for bytes that are no event: also of UTF-16 and UTF-32, with NULs in a secret, or cut inside one.

        Where NULs stand in one without such an encoding, they are given up with the secret.
        """
        clean, count = self.text(raw)
        text = clean.decode("latin-1")
        if any(anchor in text for anchor in TORN_ANCHORS):
            text, torn = TORN_END.subn(_without_torn, text)
            clean, count = (text.encode("latin-1"), count + torn) if torn else (clean, count)
        if 0 not in clean:
            return clean, count
        squeezed, more = self.text(clean.replace(b"\0", b""))
        if not more:
            return clean, count
        for encoding, width in (("utf-16-le", 2), ("utf-16-be", 2), ("utf-32-le", 4), ("utf-32-be", 4)):
            whole = len(clean) - len(clean) % width
            try:
                wide, found = self.json_line(clean[:whole].decode(encoding, "surrogatepass"))
            except UnicodeDecodeError:
                continue
            if found >= more:
                return wide.encode(encoding, "surrogatepass") + clean[whole:], count + found
        return squeezed, count + more

    def _apply(self, rule: Rule, text: str) -> tuple[str, int]:
        pieces: list[str] = []
        copied = at = 0
        while match := rule.pattern.search(text, at):
            at = match.end()
            if rule.obeys_exempt_keys and match["name"] in self.exempt_keys:
                continue
            span = self._secret(rule, match, text)
            if span is not None:
                pieces += (text[copied : span[0]], f"[REDACTED:{rule.label}]")
                copied = at = span[1]
        if not pieces:
            return text, 0
        pieces.append(text[copied:])
        return "".join(pieces), len(pieces) // 2

    @staticmethod
    def _secret(rule: Rule, match: re.Match[str], text: str) -> tuple[int, int] | None:
        """The span of the match's secret, if it is one."""
        if not rule.is_quoted:
            group = match.lastgroup or "s"
            start, end = match.span(group)
            value = match[group]
        else:
            if rule.obeys_exempt_keys and not words.is_secret_key(match["name"]):
                return None
            start = match.end()
            end, is_closed = _closing(text, start, len(match["q"]), None if rule.is_torn_secret else MAX_INNER_QUOTES)
            if not is_closed and not rule.is_torn_secret:
                return None
            value = text[start:end]
        if start == end or (rule.check is not None and not rule.check(match, value)):
            return None
        return start, end
