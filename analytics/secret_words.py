"""What tells a secret from a word: the vocabulary of secret-looking names, and of values that are none.

Where a value could be either, it counts as a secret: a lost word costs a reader a moment, a kept key costs more.
"""

from __future__ import annotations

import re

# Both syntaxes (Rust, Python) read these. The first letter is left to the pattern around them, so that `Token` and
# `token` share a literal.
_KEY_ENDINGS = (
    r"ass(?:[wW]ord|wd|[pP]hrase)|ecret|oken|redentials?|uthorization|(?:pi|rivate|ecret|ccess)[_-]?[kK]ey",
    r"PASS(?:WORD|WD|PHRASE)|SECRET|TOKEN|CREDENTIALS?|AUTHORIZATION|(?:PRIVATE|SECRET|ACCESS)[_-]?KEY|API[_-]?K(?:EY|ey)",
)
JSON_KEY_SCAN = (
    r"(?:ssword|ssWord|sswd|ssphrase|ssPhrase|ecret|oken|edentials?|uthorization"
    r"|pi_[kK]ey|pi-[kK]ey|pi[kK]ey|(?:rivate|ecret|ccess)[_-]?[kK]ey"
    r"|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|AUTHORIZATION|(?:PRIVATE|SECRET|ACCESS)[_-]?KEY|API[_-]?K(?:EY|ey))"
)
JSON_KEY_ANCHORS = (
    "ssword", "ssWord", "sswd", "ssphrase", "ssPhrase", "ecret", "oken", "edential", "uthorization", "pi_", "pi-",
    "pik", "piK", "rivate", "ccess", "PASS", "SECRET", "TOKEN", "CREDENTIAL", "AUTHORIZATION", "API", "PRIVATE",
    "ACCESS",
)  # fmt: skip
# Names in small letters (or camelCase) that a text assigns to: their endings.
LOWER_NAME = (
    r"(?:[pP]ass(?:[wW]ord|wd|[pP]hrase)|(?:[pP]rivate|[sS]ecret|[aA]ccess)[_-]?[kK]ey|[sS]ecret|[tT]oken"
    r"|[aA]pi[_-]?[kK]ey)"
)
LOWER_NAME_SCAN = (
    r"(?:ssword|ssWord|sswd|ssphrase|ssPhrase|ecret|token|Token|pi_[kK]ey|pi-[kK]ey|pi[kK]ey"
    r"|(?:rivate|ecret|ccess)[_-]?[kK]ey)"
)
LOWER_NAME_ANCHORS = (
    "ssword", "ssWord", "sswd", "ssphrase", "ssPhrase", "ecret", "token", "Token", "pi_", "pi-", "pik", "piK", "rivate",
    "ccess",
)  # fmt: skip
_SECRET_KEY = re.compile(rf"(?:(?:[pPsStTcCaA])(?:{_KEY_ENDINGS[0]})|{_KEY_ENDINGS[1]})\Z")
_SECRET_NAME = re.compile(r"API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|AUTHORIZATION")

# Names that end like a secret's and count, place or describe something.
_HARMLESS_TOKEN = re.compile(
    r"(?:next|prev|previous|page|paging|continuation|cursor|sync|resume|bos|eos|pad|unk|cls|sep|mask|stop|start|end"
    r"|first|last|special|image|audio|input|output|prompt|completion|max|min|per)[_.-]?token\Z",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"TOKENS|TOKENI[SZ]|_(?:COUNT|LIMIT|BUDGET|NAME|URL|URI|FILE|PATH|DIR|TYPE|LEN|LENGTH|TTL|EXPIR[A-Z_]*|ENV|VAR|FIELD"
    r"|HEADER|REGEX|RE|PATTERN|SCOPES?|ENDPOINT|MIN|MAX|INDEX|ERROR|INVALID|REQUIRED|MISSING)\Z"
)
# fmt: off
_NOT_A_SECRET = frozenset((
    "null", "none", "nil", "true", "false", "undefined", "unknown", "unset", "empty", "default", "n/a", "any",
    "str", "string", "text", "bytes", "int", "integer", "float", "number", "bool", "boolean", "object", "array", "list",
    "dict", "optional", "required", "redacted", "hidden", "masked", "omitted",
    "bearer", "basic", "digest", "token", "negotiate", "oauth",
    "session", "environment", "env", "keychain", "keyring", "operator-login", "api-key", "apikey",
))
# fmt: on
_CREDENTIAL_SOURCE = re.compile(r"api-key:[a-z_-]+\Z")
_PLACEHOLDER = re.compile(
    r"\$\{?[A-Za-z_]\w*\}?\Z|\$[({]|%\w+%\Z|%[sd(]|\{[\w.{}! -]*\}\Z|<.*>\Z|\[REDACTED|[*.xX_-]+\Z|your[-_ ]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:0x[0-9a-fA-F]{1,16}|[0-9][0-9_.]*)\Z")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|negotiate|apikey|api-key)\s+", re.IGNORECASE)
_EXPRESSION = re.compile(r"[A-Za-z_$][\w$]{0,40}(?:(?:\.|::|->)[A-Za-z_]\w{0,30})*[(\[]")
_DOTTED = re.compile(r"(?!eyJ)[A-Za-z_]\w{0,30}(?:\.[A-Za-z_]\w{0,30})+\Z")
_TYPE = re.compile(
    r"(?:u?int|[uifs]|float|str|string|char|varchar|bytes?|utf|base|sha|md|text|number)[0-9]{1,4}\Z", re.IGNORECASE
)
_PLACE = re.compile(r"[~./]|[a-z][a-z0-9+.-]*:|[a-z_-]+/")  # a path, a URL
_SIGN = re.compile(r"[^\w.,:;?!*()-]")
_DONE = re.compile(r"\[REDACTED:\w+\]\Z")


def _is_placeholder(value: str) -> bool:
    bare = value.strip()
    return (
        not bare
        or bare.lower() in _NOT_A_SECRET
        or _PLACEHOLDER.match(bare) is not None
        or _CREDENTIAL_SOURCE.match(bare) is not None
    )


def _squeeze(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _is_done(value: str) -> bool:
    """Nothing is left of it but a mark of ours (or of the harness), and perhaps a scheme's name."""
    return _DONE.match(_SCHEME.sub("", value.strip(), count=1)) is not None


def is_key_block(_match: re.Match[str], value: str) -> bool:
    """Not the bare header line that a grep or a sentence names."""
    return not value.endswith("-----") or "-----END" in value


def has_digit(_match: re.Match[str], value: str) -> bool:
    """Not a phrase with hyphens."""
    return any(char.isdigit() for char in value)


def is_bearer(match: re.Match[str], value: str) -> bool:
    """Not the next word of a sentence about bearer tokens."""
    return has_digit(match, value) or (len(value) >= 32 and "." not in value.strip("."))


def is_url_password(_match: re.Match[str], value: str) -> bool:
    """Not a template's hole."""
    return not _is_placeholder(value)


def is_header_value(match: re.Match[str], value: str) -> bool:
    """Not a sentence about the header: base64 has digits, capitals or padding; a bare token has digits and length."""
    before = match.string[match.start() : match.start("s")].lower().split(":")
    if before[-1].strip(" \t\"'\\") or "key" in before[0]:
        return (
            has_digit(match, value)
            or value.endswith("=")
            or (value[1:].lower() != value[1:] and "key" not in before[0])
        )
    return has_digit(match, value) and len(value) >= 20


def is_secret_key(key: str) -> bool:
    """Whether a JSON key's name says its string is a secret."""
    return _SECRET_KEY.search(key) is not None and _HARMLESS_TOKEN.search(key) is None


def is_key_value(match: re.Match[str], value: str) -> bool:
    """Not empty, a template's hole, a type, or (under a key that also names other things) a short word."""
    if _is_done(value):
        return False
    bare = _SCHEME.sub("", value.strip(), count=1)
    if len(bare) < 4 or (_is_placeholder(bare) and not bare.startswith("[REDACTED")):
        return False
    names_other_things = re.search(r"(?:token|credentials?|authorization)\Z", match["name"], re.IGNORECASE)
    return not (names_other_things and len(bare) <= 7 and bare.isalpha())


def is_assigned(match: re.Match[str], value: str) -> bool:
    """Not code, a template's hole, a count, a constant that holds its own name, or a sentence after a colon."""
    name, sep = match["name"], match["sep"]
    if _SECRET_NAME.search(name) is None or _HARMLESS_NAME.search(name) or _HARMLESS_TOKEN.search(name):
        return False
    bare = value.rstrip(")]}.,")
    if len(bare) < 4 or _is_placeholder(value) or _is_done(value) or _squeeze(value) in _squeeze(name):
        return False
    if _NUMBER.match(bare):
        return "TOKEN" not in name
    if "bare" not in match.re.groupindex or match["bare"] is None:
        return True
    if _EXPRESSION.match(value) or _DOTTED.match(value) or (value.isupper() and _SECRET_NAME.search(value)):
        return False
    is_loose = ":" in sep or " " in sep
    return not is_loose or has_digit(match, bare) or len(bare) >= 12 or re.search(r"[^\w.]", bare) is not None


def is_assigned_lower(match: re.Match[str], value: str) -> bool:
    """In small letters the same words are parameters, types and labels: only a value that no code or label has.

    The name may begin to the left of the match; what stands there tells a page token from a secret one.
    """
    text, at = match.string, match.start()
    before = re.search(r"[A-Za-z0-9_.-]*\Z", text[max(0, at - 40) : at])
    ending = match["name"].lower()
    name = (before[0] if before else "") + ending
    bare = value.strip(")]}.,:;?!*`")
    if _HARMLESS_TOKEN.search(name) or _is_done(value) or _squeeze(bare) in _squeeze(name):
        return False
    if _is_placeholder(value) or _is_placeholder(bare):
        return False
    if _PLACE.match(bare) or _DOTTED.match(bare):
        return False
    is_password, is_token = ending.startswith("pass"), ending.endswith("token")
    if not has_digit(match, bare) and not (is_password and _SIGN.search(bare)):
        return False
    if is_token and (len(bare) < 12 or not any(char.isalpha() for char in bare)):
        return False
    if match["quote"] is not None:
        return len(bare) >= (4 if is_password else 8)
    if _EXPRESSION.match(value):
        return False
    if match["sep"] == "=":
        return len(bare) >= (4 if is_password else 8)
    return len(bare) >= 12 or (is_password and len(bare) >= 6 and _TYPE.match(bare) is None)
