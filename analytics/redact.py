"""Secrets leave before anything is written: the rules, as one literal list, and the two passes that apply them.

Almost no line holds a secret, so the cost is the cost of saying so. Every rule therefore has two patterns. `scan` is a
superset in Rust's regex syntax; the scans of all rules together are one alternation in which each branch begins with
a rare literal of three bytes or more, which keeps the vectorised literal search of the Rust engine in charge (a
one-byte prefix such as `:` cost more than half the speed). `pattern` is the exact rule, in Python, and runs
only on rows that the scan names.

Patterns read JSON *text*, not decoded strings, so a secret is found at any depth of JSON inside JSON and only its
own characters change. They are linear: runs are possessive, repeats are bounded or cannot overlap.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from analytics import secret_words as words

if TYPE_CHECKING:
    import numpy as np

Check: TypeAlias = Callable[[re.Match[str], str], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret.

    anchors: literals one of which stands in every text the rule changes.
    scan: Rust regex that finds every text the rule changes (and a few more).
    pattern: the exact rule; the secret is its group `s`, or, where `is_quoted`, what stands between the quote that
    ends the match (group `q`: its backslashes) and the closing quote of the same depth.
    check: tells a secret from what merely looks like one; None = the pattern is proof.
    is_torn_secret: a quoted value whose quote never closes is a secret too.
    obeys_exempt_keys: group `name` is a JSON key that a wire may have declared harmless.
    """

    label: str
    what: str
    anchors: tuple[str, ...]
    scan: str
    pattern: re.Pattern[str]
    check: Check | None = None
    is_quoted: bool = False
    is_torn_secret: bool = False
    obeys_exempt_keys: bool = False


def _rx(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


# No letter or digit before, unless it is the end of an escape (\n, …) or of a terminal colour code.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u00[0-9a-fA-F][0-9a-fA-F])|(?<=\[[0-9]m)|(?<=\[[0-9][0-9]m))"
_BREAK = r"(?:\\++[nrt]|\\++u000[aAdD9]|\s)"
_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# A torn block has no END: its lines of base64 (with the line numbers and diff signs that tools put before them).
_TORN = (
    rf"(?:{_BREAK}*+(?:Proc-Type|DEK-Info|Version|Comment): [A-Za-z0-9,. -]{{1,80}}+)*+"
    rf"(?:{_BREAK}*+[+>|-]?+(?:[0-9]{{1,6}}(?:{_BREAK}|[:|\u2192])++)?+(?:[A-Za-z0-9+/=]|\\++/){{20,}}+)*+"
    rf"(?:{_BREAK}++(?:[A-Za-z0-9+/]|\\++/){{1,76}}+={{0,2}}+(?=[\"\\]|\Z))?+"
)
# The lines of a block as a list of strings (a patch stores them so): whole strings, none of which is a key.
_NEXT = r"""\\*+"\s*+,\s*+\\*+"[+>| -]?+"""
_LAST = r"""(?=\\*+"\s*+[,\]])"""
_LISTED = (
    rf"(?:{_NEXT}(?:(?:Proc-Type|DEK-Info|Version|Comment): [A-Za-z0-9,. -]{{1,80}}+)?+{_LAST})*+"
    rf"{_NEXT}(?:[A-Za-z0-9+/=]|\\++/){{20,}}+{_LAST}(?:{_NEXT}(?:[A-Za-z0-9+/=]|\\++/)++{_LAST})*+"
)
_ASSIGNED_NAME = r"(?<![A-Z0-9_])(?P<name>[A-Z0-9_]{1,80}+)(?:\\*+[\"']\]|')?+"
_ASSIGN = (
    r"(?P<sep>(?:[ \t]*+:[ \t]*+&?(?:'static[ \t]++)?[A-Za-z]{1,12}+[ \t]*+(?==))?"
    r"[ \t]*+(?:[:?+]?=(?![=~>])|=>|:(?![:/=]))[ \t]*+)"
)
_ASSIGN_SCAN = r"""(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|AUTHORIZATION)[A-Z0-9_]*(?:\\*["']\]|')?[ \t]*[:?+]?[=:]"""
_ASSIGN_ANCHORS = ("API_KEY", "APIKEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "AUTHORIZATION")
_AFTER_NAME = r"""(?:\\*["']\]|'|\])?"""
_LOWER_SCAN = rf"{words.LOWER_NAME_SCAN}{_AFTER_NAME}[ \t]*(?:=>?|:=?)[ \t]*\\*[\"']?[^ \t\n\r\f\v\"'\\,;]"

RULES: tuple[Rule, ...] = (
    Rule(
        "private_key",
        "PEM blocks of private keys, also with escaped line ends, also torn before their END line",
        ("PRIVATE KEY",),
        r"PRIVATE KEY(?: BLOCK)?-----",
        _rx(rf'(?P<s>{_BEGIN}(?:[^"-]*+(?:-(?!----)[^"-]*+)*+(?:-(?=-----END))?+{_END}|{_LISTED}|{_TORN}))'),
        words.is_key_block,
    ),
    Rule(
        "sk_key",
        "keys that begin with sk- (or sk_live_, sk_test_)",
        ("sk-", "sk_live_", "sk_test_"),
        r"sk-[A-Za-z0-9_-]{16}|sk_live_|sk_test_",
        _rx(
            rf"{_START}(?<![_-])(?P<s>sk-(?:(?:ant|proj|svcacct|admin|or|live|test)-[A-Za-z0-9_-]{{16,}}+"
            r"|(?:[A-Za-z0-9]{1,15}[_-]){0,4}[A-Za-z0-9]{16,}+[A-Za-z0-9_-]*+)|sk_(?:live|test)_[A-Za-z0-9]{16,}+)"
        ),
    ),
    Rule(
        "github_token",
        "GitHub tokens: ghp_, gho_, ghu_, ghs_, ghr_ and github_pat_",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{20}|github_pat_",
        _rx(rf"{_START}(?P<s>gh[pousr]_[A-Za-z0-9]{{20,}}+|github_pat_[A-Za-z0-9_]{{20,}}+)"),
    ),
    Rule(
        "bearer_token",
        "what follows the word Bearer (the word stays)",
        ("earer", "EARER"),
        r"(?:earer|EARER)(?:[ ]|%20|\\)",
        _rx(
            r"(?:[Bb]earer|BEARER)(?: {1,4}+|%20|\\++t)(?P<s>(?:[A-Za-z0-9._~+=-]|\\*+/){8,}+)"
        ),
        words.is_bearer,
    ),
    Rule(
        "aws_access_key",
        "AWS access key ids: AKIA or ASIA and 16 more",
        ("AKIA", "ASIA"),
        r"A[KS]IA[A-Z0-9]{16}",
        _rx(rf"{_START}(?P<s>A[KS]IA[A-Z0-9]{{16}})(?![A-Za-z0-9])"),
    ),
    Rule(
        "slack_token",
        "Slack tokens: xoxb-, xoxp- and their kin",
        ("xox",),
        r"xox[abceprs]-[A-Za-z0-9-]{10}",
        _rx(rf"{_START}(?P<s>xox[abceprs]-[A-Za-z0-9-]{{10,}}+)"),
        words.has_digit,
    ),
    Rule(
        "google_api_key",
        "Google API keys: AIza and 35 more",
        ("AIza",),
        r"AIza[A-Za-z0-9_-]{35}",
        _rx(rf"{_START}(?P<s>AIza[A-Za-z0-9_-]{{35}})(?![A-Za-z0-9_-])"),
    ),
    Rule(
        "gitlab_token",
        "GitLab tokens: glpat- and its kin",
        ("glpat-", "gldt-", "glrt-", "glcbt-"),
        r"gl(?:pat|dt|rt|cbt)-[A-Za-z0-9_-]{20}",
        _rx(rf"{_START}(?P<s>gl(?:pat|dt|rt|cbt)-[A-Za-z0-9_-]{{20,}}+)"),
    ),
    Rule(
        "npm_token",
        "npm access tokens: npm_ and 36 more",
        ("npm_",),
        r"npm_[A-Za-z0-9]{36}",
        _rx(rf"{_START}(?P<s>npm_[A-Za-z0-9]{{36}})(?![A-Za-z0-9])"),
    ),
    Rule(
        "hf_token",
        "Hugging Face tokens: hf_ and 34 more",
        ("hf_",),
        r"hf_[A-Za-z]{34}",
        _rx(rf"{_START}(?P<s>hf_[A-Za-z]{{34,}}+)(?![A-Za-z0-9_])"),
    ),
    Rule(
        "jwt",
        "JSON web tokens: three base64url parts, the first two beginning with eyJ",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10}",
        _rx(rf"{_START}(?P<s>eyJ[A-Za-z0-9_-]{{10,}}+\.eyJ[A-Za-z0-9_-]{{10,}}+\.[A-Za-z0-9_-]{{10,}}+)"),
    ),
    Rule(
        "url_credentials",
        "the password in scheme://user:password@host",
        ("://", r":\/\/"),
        r'://[^ /:@"\\]*:[^ /@"\\]+@|:\\/\\/[^ /:@"\\]*:[^ /@"\\]+@',
        _rx(r""":(?://|\\/\\/)(?:[^\s/:@"'\\<>?#\[]|\[REDACTED:\w{1,40}+\]){0,128}+:(?P<s>[^\s/@"'\\<>?#]{1,256}+)@"""),
        words.is_url_password,
    ),
    Rule(
        "authorization_header",
        "the credentials of an Authorization or X-Api-Key header (the scheme stays)",
        ("uthorization", "AUTHORIZATION", "-api-", "-Api-", "-API-"),
        r"""(?:uthorization|AUTHORIZATION|-(?:api|Api|API)-(?:key|Key|KEY))'?[ \t]*:""",
        _rx(
            r"""(?:(?:[aA]uthorization|AUTHORIZATION)'?+[ \t]*+:[ \t]*+\\*+["']?+"""
            r"""(?:(?:[Bb]asic|[Tt]oken|[Dd]igest|[Nn]egotiate|[Aa]pi-?[Kk]ey|BASIC)[ \t]++)?+"""
            r"""|[xX]-(?:api|Api|API)-(?:key|Key|KEY)'?+[ \t]*+:[ \t]*+\\*+["']?+)"""
            r"""(?P<s>(?:[A-Za-z0-9._~+=-]|\\*+/){8,}+)"""
        ),
        words.is_header_value,
    ),
    Rule(
        "json_key",
        "string values of secret-looking JSON keys, also of JSON inside strings",
        words.JSON_KEY_ANCHORS,
        words.JSON_KEY_SCAN + r'\\*"\s*:\s*\\*"',
        _rx(r'"(?P<name>[A-Za-z0-9_.$-]{1,80}+)(?P<q>\\*+)"\s*+:\s*+(?P=q)"'),
        words.is_key_value,
        is_quoted=True,
        is_torn_secret=True,
        obeys_exempt_keys=True,
    ),
    Rule(
        "secret_assignment",
        'NAME="value" or NAME: "value", NAME in capitals with API_KEY, SECRET, TOKEN, PASSWORD, AUTHORIZATION',
        _ASSIGN_ANCHORS,
        _ASSIGN_SCAN,
        _rx(rf'{_ASSIGNED_NAME}{_ASSIGN}(?P<q>\\*+)"(?![\s,}}\]:)"])'),
        words.is_assigned,
        is_quoted=True,
    ),
    Rule(
        "secret_assignment",
        "the same with single quotes, or none (also after `export`)",
        _ASSIGN_ANCHORS,
        _ASSIGN_SCAN,
        _rx(
            rf"{_ASSIGNED_NAME}{_ASSIGN}(?:'(?P<single>[^'\"\\\n]++)'"
            r"""|(?:\\*+["'])?+(?P<bare>[^\s"'\\,;&|<>:})\]](?:[^\s"'\\,;&|<>]|\\++[^nrtbfu"'\\\s])*+))"""
        ),
        words.is_assigned,
    ),
    Rule(
        "secret_assignment",
        "name=value, name: value, with or without quotes, where a name in small letters ends in password, passphrase, "
        "secret, token or key of an API and the value has a digit or a sign in it",
        words.LOWER_NAME_ANCHORS,
        _LOWER_SCAN,
        _rx(
            rf"(?P<name>{words.LOWER_NAME}){_AFTER_NAME}+(?P<sep>[ \t]*+(?:=>|=(?![=~>])|:=|:(?![:/=]))[ \t]*+)"
            r"""(?:\\*+(?P<quote>["'])(?P<quoted>[^\s"'\\]{4,512}+)(?=\\*+(?P=quote))"""
            r"""|(?P<bare>[^\s"'\\,;&|<>:})\]](?:[^\s"'\\,;&|<>]|\\++[^nrtbfu"'\\\s])*+))"""
        ),
        words.is_assigned_lower,
    ),
)  # fmt: skip

LABELS: tuple[str, ...] = tuple(dict.fromkeys(rule.label for rule in RULES))
SCAN = "|".join(dict.fromkeys(rule.scan for rule in RULES))

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


class Redactor:
    """Applies RULES. `exempt_keys`: JSON keys that a wire declares to hold no secret, whatever they are called."""

    def __init__(self, exempt_keys: frozenset[str] = frozenset()) -> None:
        self.exempt_keys = exempt_keys
        self._series: Any = None

    def suspects(self, payloads: pa.StringArray) -> np.ndarray | None:
        """Indices of the rows that may hold a secret; a superset of those `json_line` changes. None: not one row.

        polars is loaded here and not above: the commands that only read a lake have no use for it.
        """
        if self._series is None:
            import polars as pl  # noqa: PLC0415

            self._series = pl.Series
        hits = self._series(payloads).str.contains(SCAN)
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
        """The same for bytes of any encoding: of UTF-16 and UTF-32, too, and where NULs stand inside a secret.

        Where NULs stand there without such an encoding, they are given up with the secret.
        """
        clean, count = self.text(raw)
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
