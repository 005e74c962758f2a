"""What is remembered of the runs of a capture between two lines, and from one reading of the file to the next."""

from __future__ import annotations

from msgspec import Struct


class Answer(Struct, array_like=True):
    """The answer whose partial messages are being written: figures of its start, for deltas that name only output."""

    key: str
    model: str | None = None
    input: int | None = None
    read: int | None = None
    written: int | None = None
    hour: int | None = None


class Totals(Struct, array_like=True):
    """One model's running figures at the latest result."""

    input: int | None = None
    read: int | None = None
    written: int | None = None
    output: int | None = None
    searches: int | None = None
    cost: float | None = None


class Run(Struct, omit_defaults=True):
    """What the lines so far say of one session."""

    session_id: str | None = None
    is_begun: bool = False  # a row told how its end is judged
    is_named: bool = False  # a row told what it is
    is_told: bool = False  # an init was seen
    has_limits: bool = False
    has_tools: bool = False
    turns: int = 0  # how many have started
    turn_id: str | None = None  # the open one
    is_quiet: bool = False  # nothing was answered in the open turn yet
    model: str | None = None  # of the latest init
    models: list[str] = []  # of the main chain's answers in the latest turn
    totals: dict[str, Totals] = {}
    cost: float | None = None  # of the whole process, at the latest result
    asked: dict[str, tuple[str | None, str | None]] = {}  # control request → call id and tool
    answers: dict[str, Answer] = {}  # by the call of the subagent; "" = the main chain
    open: dict[str, tuple[str | None, str | None]] = {}  # calls without a result yet → tool, and the call above

    def start_turn(self) -> None:
        """A turn that is still open stays without an end."""
        self.turns += 1
        self.turn_id = str(self.turns)
        self.is_quiet = True
        self.models = []

    def end_turn(self) -> None:
        """What was left open in it is not finished by a later turn."""
        self.turn_id = None
        self.asked, self.answers, self.open = {}, {}, {}


class State(Struct, omit_defaults=True):
    """The runs of a source by session id ("" = none yet), and the session of the latest row that named one."""

    runs: dict[str, Run] = {}
    current: str | None = None
