"""The kinds of secrets, as one literal list: how a text is told to be worth a look, and the exact rule.

Every rule has two patterns. `scan` is a superset in Rust's regex syntax; the scans of all rules together are one
alternation in which each branch begins with a rare literal of three bytes or more, which keeps the vectorised literal
search of the Rust engine in charge (a one-byte prefix such as `:` cost more than half the speed). `pattern` is the
exact rule, in Python, and runs only on rows that the scan names.

Patterns read JSON *text*, not decoded strings, so a secret is found at any depth of JSON inside JSON and only its
own characters change. They are linear: runs are possessive, repeats are bounded or cannot overlap.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from analytics import secret_words as words

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
# only what has more than letters in it is a value: prose says "token: string" all the time
_LOWER_VALUE = r"[A-Za-z]*(?:[^A-Za-z \t\n\r\f\v\"'\\]|\\+[^nrtbfu\"'\\ \t\n\r\f\v])"
_LOWER_SCAN = rf"{words.LOWER_NAME_SCAN}{_AFTER_NAME}[ \t]*(?:=>?|:=?)[ \t]*\\*[\"']?{_LOWER_VALUE}"

# A value without quotes. An & ends it only where another field of a form or another command follows.
_BARE = (
    r"""(?P<bare>[^\s"'\\,;&|<>:})\]](?:[^\s"'\\,;&|<>]|&(?!&|[\w.%+-]{1,40}=)(?=[^\s"'\\,;&|<>])"""
    r"""|\\++[^nrtbfu"'\\\s])*+)"""
)

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
            r"""(?:(?:[aA]uthorization|AUTHORIZATION)'?+[ \t]*+:(?:[ \t]|\\++t)*+(?:\\*+["'])?+"""
            r"""(?:(?:[Bb]asic|[Tt]oken|[Dd]igest|[Nn]egotiate|[Aa]pi-?[Kk]ey|BASIC)[ \t]++)?+"""
            r"""|[xX]-(?:api|Api|API)-(?:key|Key|KEY)'?+[ \t]*+:(?:[ \t]|\\++t)*+(?:\\*+["'])?+)"""
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
            rf"""|(?:\\*+["'])?+{_BARE})"""
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
            rf"""|{_BARE})"""
        ),
        words.is_assigned_lower,
    ),
)  # fmt: skip

# The beginning of a secret where a text (or a record, before another one) breaks off, shorter than its rule asks for;
# the group's name is the label.
TORN_END = _rx(
    rf"(?:{_START}(?:(?P<sk_key>sk[-_][A-Za-z0-9_-]{{0,120}}+)"
    r"|(?P<github_token>(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{0,120}+)|(?P<aws_access_key>A[KS]IA[A-Z0-9]{0,16}+)"
    r"|(?P<slack_token>xox[abceprs]-[A-Za-z0-9-]{0,120}+)|(?P<google_api_key>AIza[A-Za-z0-9_-]{0,35}+)"
    r"|(?P<gitlab_token>gl(?:pat|dt|rt|cbt)-[A-Za-z0-9_-]{0,120}+)|(?P<npm_token>npm_[A-Za-z0-9]{0,36}+)"
    r"|(?P<hf_token>hf_[A-Za-z]{0,120}+)|(?P<jwt>eyJ[A-Za-z0-9_.-]{0,1024}+))"
    r"|(?:[Bb]earer|BEARER|[Bb]asic|BASIC)(?: {1,4}+|%20)(?P<bearer_token>(?:[A-Za-z0-9._~+=-]|\\*+/){1,1024}+)"
    r"""|:(?://|\\/\\/)[^\s/:@"'\\<>?#\[]{0,128}+:"""
    r"""(?P<url_credentials>(?![0-9]{0,5}(?:\Z|\{))[^\s/@"'\\<>?#\[{]{1,256}+))(?:\Z|(?=\{\\*"))"""
)
TORN_ANCHORS = (
    "sk-", "sk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA", "xox", "AIza", "glpat-",
    "gldt-", "glrt-", "glcbt-", "npm_", "hf_", "eyJ", "earer", "EARER", "asic", "ASIC", "://", r":\/",
)  # fmt: skip

LABELS: tuple[str, ...] = tuple(dict.fromkeys(rule.label for rule in RULES))
# Secrets known by their own looks, and those known by a name before them: of each sort few enough beginnings to search
# for all at once. One pattern of both takes half as long again.
_NAMED = ("json_key", "secret_assignment")
SCANS: tuple[str, str] = (
    "|".join(dict.fromkeys(rule.scan for rule in RULES if rule.label not in _NAMED)),
    "|".join(dict.fromkeys(rule.scan for rule in RULES if rule.label in _NAMED)),
)
