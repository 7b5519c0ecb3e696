"""What can go wrong, what each refusal is called, and how every error is told to people and to programs."""

import json
from collections.abc import Iterable
from typing import Any

# code -> (what is wrong, what to do), in order of precedence: of two that apply, the earlier one is reported.
REFUSALS: dict[str, tuple[str, str]] = {
    "bad_map": ("the map does not say how to make commands", "compare it with the example of a map"),
    "bad_csv": (
        "not a row of the table that the map describes",
        "one header, in it each column of the map once, a cell a column, quotes closed, UTF-8",
    ),
    "unmapped_value": ("the map has no such value", "add it to the field's `map`, or leave such rows out with `where`"),
    "malformed": (
        "not one JSON object of this vocabulary: bad JSON, unknown type, missing or unknown field",
        "compare the line with the table of commands",
    ),
    "id_empty": ("an id is the empty text", "give it at least one character"),
    "id_too_long": ("an id has more than 200 characters", "shorten it; keep long names in a title"),
    "id_not_plain": (
        "an id holds control, invisible or unassigned characters, outer spaces, or is not in Unicode form NFC",
        "use printable characters in form NFC",
    ),
    "text_too_long": (
        "a title, reason, currency or note has more than 10,000 characters, a prompt or reply more than 1,000,000",
        "shorten it",
    ),
    "bad_instant": ("not an RFC 3339 instant, or not on the calendar", "write 2026-03-01T09:30:00Z"),
    "naive_instant": ("the instant has no offset", "end it with Z or an offset such as +01:00"),
    "bad_number": ("not a decimal number", "write it as 0.25, with digits, point and exponent only"),
    "not_finite": ("the number is infinite or not a number", "give a finite decimal"),
    "command_id_reused": (
        "this command id is recorded with other content",
        "send a retry unchanged, and a new command under a new id",
    ),
    "out_of_range": ("the number lies outside its range", "keep to the range in the message"),
    "unknown_contest": ("no such contest in this ledger", "open it first"),
    "unknown_question": ("no such question in this ledger", "open it first"),
    "unknown_rules": ("no preset of this name", "name a preset, or give the whole rule set as an object"),
    "rules_not_consistent": ("fields of the rule set contradict one another", "change one of those in the message"),
    "duplicate_question": ("a question of this id exists", "choose another id"),
    "duplicate_contest": ("a contest of this id exists", "choose another id"),
    "duplicate_outcome": ("an outcome is named twice, or there are fewer than two", "name each of two or more once"),
    "wrong_fields_for_kind": (
        "the fields do not belong to this kind of question",
        "outcomes go with multiple_choice, range with numeric, neither with binary",
    ),
    "wrong_distribution": (
        "not the one kind of distribution that the question takes",
        "probability for binary, probabilities for multiple_choice, cdf or quantiles for numeric",
    ),
    "wrong_resolution": ("not the one kind of answer the question takes", "value for numeric, else outcome"),
    "unknown_outcome": ("the question has no such outcome", "use the outcomes it was opened with"),
    "wrong_length": (
        "not bins + 1 values of the cdf, not one quantile a level, or an outcome without a probability",
        "give the value at every edge of a bin, the quantile at every level, or each outcome its probability",
    ),
    "not_summing_to_one": ("the probabilities miss one by more than 0.000001", "give each outcome its probability"),
    "decreasing": ("the cdf or the quantiles decrease", "sort them; each value includes the one before"),
    "open_end_needed": (
        "probability or value beyond a closed end of the range",
        "start the cdf at 0 and end it at 1 there, or open that end",
    ),
    "question_resolved": ("the question is resolved or annulled", "revoke the resolution first"),
    "question_closed": ("the question is closed at that instant", "nothing can be done after the close"),
    "not_resolved": ("the question has no resolution to revoke", "nothing is left to do"),
    "before_opening": ("that cannot happen before the question opens", "use an instant from opens_at on"),
    "wrong_order_of_instants": (
        "the instants do not follow one another",
        "opens_at < reveals_at <= closes_at, within 100 years; spot_at among them; known_at from the opening until at",
    ),
    "contest_finalized": ("the contest is finalized", "open another contest"),
    "question_in_contest": ("the question is in the contest already", "nothing is left to do"),
    "unscorable_question": (
        "the contest's rule set does not score such a question",
        "add it to a contest whose rules have a kernel for its kind",
    ),
    "no_hidden_period": (
        "hidden_coverage_weight on a question that has no hidden period, or below 1 where nothing follows it",
        "open the question with reveals_at before its close, or leave the weight out",
    ),
    "pool_not_payable": ("the pool is not a whole number of payable units", "round the pool or refine the unit"),
    "contest_not_finalized": ("the contest's board is not sealed", "finalize the contest first"),
    "not_trading": (
        "the contest's rule set has no trading",
        "open the contest with a trading rule set, or leave out starts_at and series",
    ),
    "duplicate_cohort": ("the series has a cohort of that week", "use that one, or name another series"),
    "not_enrolled": ("the participant is not enrolled in the contest", "enrol it first"),
    "enrolled_already": ("the participant is enrolled, with its starting cash", "nothing is left to do"),
    "no_recapitalisation": (
        "the rule set lets no cash in or out",
        "open the contest with recapitalisation in its trading rules",
    ),
    "not_enough_cash": ("more than the cash there is", "withdraw at most the balance"),
    "contest_complete": (
        "everybody has decided, and no position is open",
        "open another contest; a revoked resolution opens positions again",
    ),
    "wrong_period": ("at is not in that period of the contest", "number periods from 1, from the contest's start"),
    "cohort_not_deciding": ("newer cohorts of the series decide instead", "decide in one of the newest"),
    "decision_taken": (
        "the decision for that period is taken, or that attempt recorded with other content",
        "decide again in the next period",
    ),
    "wrong_attempt": ("not the attempt that comes next", "number attempts from 1"),
    "out_of_order": (
        "earlier than what the participant last did there, or than the question's last quote or trade",
        "send them in order of time",
    ),
    "nothing_standing": ("the participant has no standing forecast on the question", "nothing is left to do"),
    "contest_not_complete": (
        "somebody has taken no decision yet, or a position is open",
        "wait for the resolutions, or cancel the markets",
    ),
    "prizes_paid": ("the contest's prizes are paid, the whole pool", "nothing is left to do"),
    "prizes_unknown": (
        "this writer does not know what a sealed board is worth",
        "use `forecast-ledger`, or open the ledger with forecast_ledger.open",
    ),
    "nobody_wins": ("the contest's sealed board gives nobody a prize", "nothing is left to do"),
    "prizes_differ": (
        "a prize that is recorded as paid is not what the sealed board says",
        "let `verify` name it, and pay from a copy of the log that ends before it",
    ),
    "batch_refused": ("another command of the same atomic batch was refused", "mend that one and send all again"),
}
# What an error has as plain values, in this order, where it applies.
KEYS: dict[str, str] = {
    "error": "`refused`; `conflict`: somebody else wrote at the same time, send it again; `unavailable`: the store; "
    "`uncertain`: it may be recorded, send it again; `corrupt`: the log",
    "code": "of a refusal, one of the codes",
    "field": "where in the command",
    "value": "what stood there, as text, shortened",
    "position": "the log position of the damage",
    "detail": "more about this case",
    "meaning": "what is wrong",
    "remedy": "what to do",
}


class LedgerError(Exception):
    """Root of everything this project raises on purpose.

    `to_dict` and `as_json` have those of KEYS that apply, in that order. Keys, kinds of error and codes are for good;
    the wording of the rest is not.

    >>> from forecast_ledger import LedgerError, replay
    >>> try:
    ...     replay("no/such/folder/season.db")
    ... except LedgerError as error:
    ...     error.to_dict()["error"], error.to_dict()["remedy"]
    ('unavailable', 'mend what the message says, then send it again')
    """

    kind, meaning, remedy = "error", "something went wrong", "read the message"

    def to_dict(self) -> dict[str, str | int]:
        """The error as plain values, all of them printable."""
        return {"error": self.kind, **self._particulars(), "meaning": self.meaning, "remedy": self.remedy}

    def as_json(self) -> str:
        """The error as one line of JSON in ASCII.

        >>> print(Refused("id_empty", "question", "").as_json()[:73])
        {"error": "refused", "code": "id_empty", "field": "question", "value": ""
        """
        return json.dumps(self.to_dict())

    def _particulars(self) -> dict[str, str | int]:
        return {"detail": _shown(str(self), 1_000)}


class Refused(LedgerError):
    """A command or a question broke a rule; nothing of it is in the log. `code` is a key of REFUSALS.

    remedy: what to do, where it is not what the table says: whoever only asks can open or enrol nothing.

    >>> from forecast_ledger import Refused, commands, open
    >>> close = commands.CloseQuestion(at="2026-03-08T00:00:00Z", question="rain")
    >>> with open(":memory:") as ledger:
    ...     try:
    ...         ledger.handle(close, command_id="close-rain")
    ...     except Refused as refused:
    ...         print(refused.code, refused.field, refused.value)
    unknown_question question rain
    """

    kind = "refused"

    def __init__(self, code: str, field: str = "", value: Any = None, detail: str = "", *, remedy: str = "") -> None:
        self.code, self.field, self.value, self.detail = code, field, value, detail
        self.meaning, usual = REFUSALS[code]
        self.remedy = remedy or usual
        super().__init__(code, field, value, detail)

    def __str__(self) -> str:
        """The code, the field with its value, what is wrong and the remedy, on one line.

        >>> print(Refused("unknown_question", "question", "q9"))
        unknown_question: question = 'q9': no such question in this ledger; open it first
        """
        field = _shown(str(self.field))
        where = f"{field} = {_shown(repr(self.value))}: " if field and self.value is not None else f"{field}: "
        return f"{self.code}: {where if field else ''}{_shown(self.detail, 200) or self.meaning}; {self.remedy}"

    def _particulars(self) -> dict[str, str | int]:
        said: dict[str, str | int] = {"code": self.code}
        if self.field:
            said["field"] = _shown(str(self.field))
        if self.value is not None:
            said["value"] = _shown(self.value if isinstance(self.value, str) else repr(self.value))
        return said | ({"detail": _shown(self.detail, 200)} if self.detail else {})


def first_by_precedence(refusals: Iterable[Refused]) -> Refused:
    """Of several refusals, the one whose code comes first in the table.

    >>> first_by_precedence([Refused("bad_number"), Refused("malformed")]).code
    'malformed'
    """
    order = list(REFUSALS)
    return min(refusals, key=lambda refused: order.index(refused.code))


def _shown(text: str, most: int = 80) -> str:
    """The text in printable characters, cut to a length that a message can hold."""
    cut = text if len(text) <= most else text[: most - 3] + "..."
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")


class Conflict(LedgerError):
    """Somebody who takes no turns wrote at the same time, each time; nothing was recorded, so a retry is safe.

    >>> from forecast_ledger import Conflict
    >>> Conflict("log position 7 was taken").to_dict()["remedy"]
    'send it again'
    """

    kind = "conflict"
    meaning, remedy = "somebody else wrote there at the same time; nothing was recorded", "send it again"


class Unavailable(LedgerError):
    """The store cannot be opened, read or locked now; the message says why.

    >>> from forecast_ledger import Unavailable, open
    >>> try:
    ...     open("https://example.org/season.db")
    ... except Unavailable as error:
    ...     print(error)
    https://example.org/season.db: a log is a file path or a postgresql:// URL, not https://
    """

    kind = "unavailable"
    meaning, remedy = "the store cannot be opened, read or locked", "mend what the message says, then send it again"


class Absent(Unavailable):
    """There is no ledger there yet: the first command appended would start one."""


class Uncertain(LedgerError):
    """The store failed as it was recording: what was sent is recorded as a whole or not at all, and which is not known.

    A disk that could not be synchronised may still have the rows after a crash, a server that did not answer may have
    committed. Sent again, nothing is recorded twice.

    >>> from forecast_ledger import Uncertain
    >>> print(Uncertain("the server did not answer"))
    the server did not answer: it is not known whether this was recorded; send it again, which is safe
    """

    kind = "uncertain"
    meaning, remedy = "it is not known whether this was recorded", "send it again, which is safe"

    def __str__(self) -> str:
        """What failed, what that means, and the remedy."""
        return f"{self.args[0]}: {self.meaning}; {self.remedy}"

    def _particulars(self) -> dict[str, str | int]:
        return {"detail": _shown(str(self.args[0]), 1_000)}


class Corrupt(LedgerError):
    """The log is damaged; `position` is the first log position that cannot be trusted, by a `check` of `verify`.

    >>> from forecast_ledger import Corrupt
    >>> damage = Corrupt(7, "the row does not match its digest", "digests")
    >>> damage.position, damage.check
    (7, 'digests')
    """

    kind = "corrupt"
    meaning, remedy = "the log is damaged", "trust nothing from that log position on; restore a copy of the log"

    def __init__(self, position: int, message: str, check: str = "decided") -> None:
        self.position, self.check = position, check
        super().__init__(position, message)

    def __str__(self) -> str:
        """Where, then what."""
        return f"log position {self.position}: {self.args[1]}"

    def _particulars(self) -> dict[str, str | int]:
        return {"position": self.position, "detail": _shown(str(self.args[1]), 1_000)}
