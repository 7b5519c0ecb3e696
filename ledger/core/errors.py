"""Errors: every refusal code with its meaning and remedy, and each error as text and as JSON."""

import json
from collections.abc import Iterable
from typing import Any

from forecast_ledger.ledger.core.redaction import redacted_text

# code -> (what is wrong, what to do), in order of precedence: if two apply, the earlier one is reported.
REFUSALS: dict[str, tuple[str, str]] = {
    "bad_map": ("the map is not valid", "compare it with the example of a map"),
    "bad_csv": (
        "the file or the row is not valid CSV, or does not have the columns of the map",
        "write one header that has each column of the map once, one cell for each column, closed quotes, and UTF-8",
    ),
    "bad_source": (
        "the source of an import does not have the files or the form that its format publishes",
        "correct the file, or ask who publishes it; `forecast-ledger import-from --help` says which files it reads",
    ),
    "ambiguous": (
        "the table can be read in more than one way, or does not say something that is needed",
        "give the option that the message names",
    ),
    "unmapped_value": (
        "the `map` of the field does not have this value",
        "add the value to the `map`, or leave out such rows with `where`",
    ),
    "no_command": (
        "the map makes no command of the row, which fails `where`, `present` or `above` of every command",
        "correct the row, give the map a command for such rows, or leave out --strict",
    ),
    "malformed": (
        "the line is not a command: invalid JSON, an unknown type, or a missing, unknown or invalid field",
        "compare it with `forecast-ledger help commands`",
    ),
    "id_empty": ("the id is empty", "give an id of at least one character"),
    "id_too_long": ("the id is longer than 200 characters", "use a shorter id; a title can hold a long name"),
    "id_not_plain": (
        "the id has control, invisible or unassigned characters, or outer spaces, or is not in Unicode form NFC",
        "use printable characters in form NFC",
    ),
    "text_too_long": (
        "a prompt, response or reasoning has at most 1,000,000 characters, any other text at most 10,000",
        "shorten it",
    ),
    "bad_instant": (
        "this is not an RFC 3339 instant, or no such date or time exists",
        "write it as 2026-03-01T09:30:00Z",
    ),
    "naive_instant": ("the instant has no offset from UTC", "add Z or an offset such as +01:00"),
    "bad_number": ("this is not a decimal number", "write it as 0.25, with only digits, a point and an exponent"),
    "amount_not_text": (
        "an amount of a rule set is a number, which earlier versions read as 1e-6 of its unit",
        'write it as a text in its unit, such as "50"',
    ),
    "not_finite": ("the number is infinite or NaN", "give a finite number"),
    "command_id_reused": (
        "another command with this id is already recorded",
        "retry a command without changes, and give a new command a new id",
    ),
    "id_not_visible": (
        "a new id has a character that cannot be seen, so that it may look the same as another id",
        "leave out the character that the message names",
    ),
    "ledger_in_use": (
        "the ledger has rows that its own clock has stamped, so that no earlier times of receipt can be imported",
        "import into a new ledger, before anything else is recorded in it",
    ),
    "claimed_too_late": (
        "the command claims an instant that is further after its recording than this writer takes",
        "leave `at` out: the ledger stamps the instant of the recording",
    ),
    "claimed_too_early": (
        "the command claims an instant that is further before its recording than this writer takes",
        "leave `at` out: the ledger stamps the instant of the recording",
    ),
    "version_too_new": (
        "the version is newer than that of the program that is to record it, which would lock itself out",
        "upgrade this process first, or state a version up to its own",
    ),
    "participant_renamed": (
        "the participant has another id now",
        "use the id that the message names",
    ),
    "out_of_range": ("the number is out of range", "give a number in the range that the message names"),
    "unknown_contest": ("this ledger has no such contest", "open the contest first"),
    "unknown_question": ("this ledger has no such question", "open the question first"),
    "unknown_rules": ("there is no preset of this name", "name a preset, or give a whole rule set as an object"),
    "rules_not_consistent": (
        "fields of the rule set contradict each other",
        "change one of the fields that the message names",
    ),
    "duplicate_question": ("a question with this id already exists", "choose another id"),
    "duplicate_contest": ("a contest with this id already exists", "choose another id"),
    "duplicate_outcome": (
        "two outcomes have the same name, or there are fewer than two outcomes",
        "give two or more outcomes, each with its own name",
    ),
    "wrong_fields_for_kind": (
        "a field is missing, or does not belong to a question of this kind",
        "give outcomes for multiple_choice, range for numeric, date and discrete, and neither for binary",
    ),
    "wrong_distribution": (
        "the question takes another kind of forecast, or not exactly one was given",
        "give probability for binary, probabilities for multiple_choice, cdf, points, quantiles or samples for a range",
    ),
    "wrong_resolution": (
        "the question takes another kind of answer, or more than one was given",
        "give value, or the name beyond an open end, for a range, otherwise outcome or payouts",
    ),
    "unknown_outcome": ("the question has no such outcome", "use an outcome that the question has now"),
    "wrong_length": (
        "a cdf takes bins + 1 values, and others one for each level, sample or outcome",
        "give a value for every edge of a bin, every level, sample or outcome",
    ),
    "not_summing_to_one": (
        "the sum of the probabilities or payouts differs from 1 by more than 0.000001",
        "give numbers that sum to 1, or have them divided by it: `normalized`, or `normalize` in the map of a CSV",
    ),
    "decreasing": ("the values of the cdf or the quantiles decrease", "give them in increasing order"),
    "open_end_needed": (
        "a probability or a value is beyond a closed end of the range",
        "start the cdf at 0 and end it at 1 if these ends are closed, or open a question with open_lower or open_upper",
    ),
    "outcomes_quoted": (
        "prices of the question's outcomes are recorded, so its outcomes cannot change",
        "open another question",
    ),
    "crossed_quote": ("the bid of an outcome is above its ask", "check that bids and asks are not exchanged"),
    "question_resolved": ("the question is already resolved or annulled", "revoke the resolution or annulment first"),
    "question_closed": ("the question is closed at this instant", "forecasts cannot change after the close"),
    "not_resolved": ("the question is neither resolved nor annulled", "no action is needed"),
    "before_opening": ("this cannot happen before the question opens", "use an instant at or after opens_at"),
    "wrong_order_of_instants": (
        "the instants are in the wrong order",
        "use opens_at < reveals_at <= closes_at, within 100 years; spot_at between them; known_at, quoted_at up to at",
    ),
    "contest_finalized": ("the contest is finalized", "use another contest"),
    "question_not_in_contest": ("the question is not in the contest", "add it to the contest"),
    "question_in_contest": ("the question is already in the contest", "no action is needed"),
    "unscorable_question": (
        "the contest's rule set cannot score this question",
        "add it to a contest whose rule set has a kernel for its kind",
    ),
    "no_hidden_period": (
        "hidden_coverage_weight needs a question with reveals_at; below 1, reveals_at must be before closes_at",
        "leave the weight out, or open a question with reveals_at before closes_at",
    ),
    "pool_not_payable": (
        "the pool is not a multiple of payable_unit, or is below the least prize",
        "round the pool, or choose a smaller payable_unit",
    ),
    "contest_not_finalized": ("the contest is not finalized", "finalize the contest first"),
    "unknown_participant": (
        "nothing is recorded of a participant with this id",
        "give the id under which forecasts or enrolments are recorded",
    ),
    "same_participant": ("the participant has this id already", "no action is needed"),
    "account_keeps_id": (
        "both ids have an account in a trading contest that is not finalized",
        "rename the participant when that contest is finalized; until then, exclude_participant can hide one account",
    ),
    "not_trading": (
        "the contest's rule set has no trading",
        "open a contest with a trading rule set, or leave out starts_at and series",
    ),
    "duplicate_cohort": (
        "the series already has a cohort that starts in that week",
        "use that cohort, or name another series",
    ),
    "not_enrolled": ("the participant is not enrolled in the contest", "enrol the participant first"),
    "enrolled_already": (
        "the participant is already enrolled and has its starting cash",
        "no action is needed",
    ),
    "no_recapitalisation": (
        "the contest's rule set allows no deposits or withdrawals",
        "open a contest whose trading rules set recapitalisation",
    ),
    "no_recorded_trades": (
        "the contest's rule set takes no trades that happened elsewhere",
        "open a contest whose trading rules set recorded_trades",
    ),
    "not_enough_shares": (
        "more shares are sold than the participant holds",
        "record the purchases first, or open a contest whose trading rules set short_sales",
    ),
    "too_much_traded": (
        "the account would have traded more shares or money than the limit of an account",
        "use another contest",
    ),
    "not_enough_cash": ("the amount is more than the participant's cash", "use at most the balance"),
    "contest_complete": (
        "every participant has taken a decision and no position is open",
        "use another contest; if a resolution is revoked, its positions are open again",
    ),
    "wrong_period": (
        "at is not in this period of the contest",
        "give the period that at is in; periods are numbered from 1",
    ),
    "cohort_not_deciding": (
        "newer cohorts of the series have replaced this one: it takes no more decisions",
        "decide in one of the newest cohorts",
    ),
    "decision_taken": (
        "the participant's decision for this period is already recorded, or another reply for this attempt",
        "decide again in the next period",
    ),
    "wrong_attempt": ("this is not the number of the next attempt", "number attempts from 1, without gaps"),
    "out_of_order": (
        "this is earlier than the participant's last action there, or than the question's last quote or trade",
        "send commands in order of time",
    ),
    "nothing_standing": ("the participant has no standing forecast on the question", "no action is needed"),
    "contest_not_complete": (
        "a participant has taken no decision yet, or a position is open",
        "wait for the decisions and resolutions, or cancel the open markets",
    ),
    "prizes_paid": ("the whole pool of the contest is already paid", "no action is needed"),
    "prizes_unknown": (
        "this writer cannot compute prizes",
        "use `forecast-ledger`, or open the ledger with forecast_ledger.open",
    ),
    "nobody_wins": ("no participant wins a prize on the contest's final board", "no action is needed"),
    "prizes_differ": (
        "a prize that is already paid differs from the contest's final board",
        "run `verify` to find the payment, and pay from a copy of the log that ends before it",
    ),
    "batch_refused": (
        "another command of the same atomic batch was refused",
        "correct that command, then send all again",
    ),
}
# The keys of an error as plain values, in this order; an error has those that apply.
KEYS: dict[str, str] = {
    "error": "`refused`: the command or request broke a rule; `conflict`: another program wrote at the same time; "
    "`unavailable`: the store cannot be used now; `uncertain`: the command may or may not be recorded; "
    "`corrupt`: the log is damaged; `newer_version`: a newer version wrote to the log, which is not damaged",
    "code": "the code of the refusal",
    "field": "the field of the command",
    "pointer": "the JSON Pointer (RFC 6901) to the field in the JSON of the command, and to the item of a list if one "
    "item alone has the value; only of a command that was read from JSON or that a ledger refused",
    "value": "the value of that field, as text, shortened",
    "position": "the log position of the damage",
    "detail": "what is wrong in this case",
    "meaning": "what is wrong in general",
    "remedy": "what to do",
}


class LedgerError(Exception):
    """Base class of the errors that this package raises.

    `to_dict` and `as_json` have the KEYS that apply, in that order. Keys, kinds of error and codes never change; the
    other texts may. http_status: of the answer of a service. retryable: whether it helps to make the same call again,
    under the same id.

    >>> from forecast_ledger import LedgerError, replay
    >>> try:
    ...     replay("no/such/folder/season.db")
    ... except LedgerError as error:
    ...     error.to_dict()["error"], error.to_dict()["remedy"]
    ('unavailable', 'try again; if that does not help, correct what the message names')
    """

    kind, meaning, remedy = "error", "an error occurred", "read the message"
    http_status, retryable = 500, False

    def __init__(self, *args: Any) -> None:
        """Keep the texts of a message without passwords and other secrets of locations."""
        super().__init__(*(redacted_text(text) if type(text) is str else text for text in args))

    def to_dict(self) -> dict[str, str | int]:
        """Return the error as plain values, all of them printable."""
        return {"error": self.kind, **self._particulars(), "meaning": self.meaning, "remedy": self.remedy}

    def as_json(self) -> str:
        """Return the error as one line of JSON in ASCII.

        >>> print(Refused("id_empty", "question", "").as_json()[:73])
        {"error": "refused", "code": "id_empty", "field": "question", "value": ""
        """
        return json.dumps(self.to_dict())

    def _particulars(self) -> dict[str, str | int]:
        return {"detail": _printable(str(self), 1_000)}


class Refused(LedgerError):
    """A command or a request broke a rule, and nothing was recorded. `code` is a key of REFUSALS.

    pointer: the JSON Pointer to the field in the command; None if it is not known, or the refusal is of another input.
    remedy: what to do in this case, if the remedy in REFUSALS does not fit: a reader cannot open or enrol anything.

    >>> from forecast_ledger import Refused, commands, open_ledger
    >>> close = commands.CloseQuestion(at="2026-03-08T00:00:00Z", question="rain")
    >>> with open_ledger(":memory:") as ledger:
    ...     try:
    ...         ledger.handle(close, command_id="close-rain")
    ...     except Refused as refused:
    ...         print(refused.code, refused.field, refused.value)
    unknown_question question rain
    """

    kind = "refused"
    http_status = 422
    pointer: str | None = None

    def __init__(self, code: str, field: str = "", value: Any = None, detail: str = "", *, remedy: str = "") -> None:
        self.code, self.field, self.value, self.detail = code, field, value, detail
        self.meaning, usual = REFUSALS[code]
        self.remedy = remedy or usual
        super().__init__(code, field, value, detail)

    def __str__(self) -> str:
        """Return the code, the field with its value, what is wrong and the remedy, on one line.

        >>> print(Refused("unknown_question", "question", "q9"))
        unknown_question: question = 'q9': this ledger has no such question; open the question first
        """
        field = _printable(str(self.field))
        where = f"{field} = {_printable(repr(self.value))}: " if field and self.value is not None else f"{field}: "
        return f"{self.code}: {where if field else ''}{_printable(self.detail, 200) or self.meaning}; {self.remedy}"

    def about(self, subject: str) -> "Refused":
        """Return the refusal with a detail that begins with what it is about.

        >>> print(Refused("bad_number", "prices.yes").about("the quote of 'rain'").detail)
        the quote of 'rain': this is not a decimal number
        """
        return Refused(
            self.code, self.field, self.value, f"{subject}: {self.detail or self.meaning}", remedy=self.remedy
        )

    def _particulars(self) -> dict[str, str | int]:
        particulars: dict[str, str | int] = {"code": self.code}
        if self.field:
            particulars["field"] = _printable(str(self.field))
        if self.pointer:
            particulars["pointer"] = _printable(self.pointer)
        if self.value is not None:
            particulars["value"] = _printable(self.value if isinstance(self.value, str) else repr(self.value))
        return particulars | ({"detail": _printable(self.detail, 200)} if self.detail else {})


_PLACES = {code: place for place, code in enumerate(REFUSALS)}


def first_by_precedence(refusals: Iterable[Refused]) -> Refused:
    """Return the refusal whose code comes first in REFUSALS.

    >>> first_by_precedence([Refused("bad_number"), Refused("malformed")]).code
    'malformed'
    """
    return min(refusals, key=lambda refused: _PLACES[refused.code])


def _printable(text: str, most: int = 80) -> str:
    """Return the text in printable characters, cut to a length that fits a message."""
    text = redacted_text(text)
    cut = text if len(text) <= most else text[: most - 3] + "..."
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")


class Conflict(LedgerError):
    """Another program wrote at the same time, without the lock, in every attempt; nothing was recorded.

    >>> from forecast_ledger import Conflict
    >>> Conflict("log position 7 was taken").to_dict()["remedy"]
    'send it again'
    """

    kind = "conflict"
    http_status, retryable = 409, True
    meaning, remedy = "another program wrote to the log at the same time; nothing was recorded", "send it again"


def installing(extra: str) -> str:
    """Return the command that installs an optional part of this package, also in a clone.

    >>> installing("columnar")
    "run pip install 'forecast-ledger[columnar]', in a clone of the repository pip install '.[columnar]'"
    """
    return f"run pip install 'forecast-ledger[{extra}]', in a clone of the repository pip install '.[{extra}]'"


class Unavailable(LedgerError):
    """The store cannot be opened, read or locked; the message says why.

    >>> from forecast_ledger import Unavailable, open_ledger
    >>> try:
    ...     open_ledger("mysql://example.org/season")
    ... except Unavailable as error:
    ...     print(str(error).partition(";")[0])
    mysql://example.org/season: mysql:// is not supported
    """

    kind = "unavailable"
    http_status, retryable = 503, True
    meaning = "the store cannot be opened, read or locked"
    remedy = "try again; if that does not help, correct what the message names"


class Absent(Unavailable):
    """The ledger does not exist yet; appending a command creates it."""

    http_status, retryable = 404, False


class Behind(Unavailable):
    """The tables of a read model are behind the log, and did not reach the asked position in time."""

    meaning = "the tables are behind the log: they do not have the events up to this log position yet"
    remedy = "ask again; if that does not help, see whether the runner of the tables runs"


class Uncertain(LedgerError):
    """The store failed during recording: all that was sent is recorded, or nothing, and it is not known which.

    A disk that could not be synchronised may still have the rows after a crash; a server that did not answer may have
    committed. It is safe to send the same commands again: none is recorded twice.

    >>> from forecast_ledger import Uncertain
    >>> print(Uncertain("the server did not answer"))
    the server did not answer: it is not known whether this was recorded; send it again, which is safe
    """

    kind = "uncertain"
    http_status, retryable = 503, True
    meaning, remedy = "it is not known whether this was recorded", "send it again, which is safe"

    def __str__(self) -> str:
        """Return what failed, what that means, and the remedy."""
        return f"{self.args[0]}: {self.meaning}; {self.remedy}"

    def _particulars(self) -> dict[str, str | int]:
        return {"detail": _printable(str(self.args[0]), 1_000)}


class Corrupt(LedgerError):
    """The log is damaged. `position` is the first log position that cannot be trusted; `check`, the check that failed.

    >>> from forecast_ledger import Corrupt
    >>> damage = Corrupt(7, "the row does not match its digest", "digests")
    >>> damage.position, damage.check
    (7, 'digests')
    """

    kind = "corrupt"
    meaning, remedy = "the log is damaged", "do not trust the log from that position on; restore it from a copy"

    def __init__(self, position: int, message: str, check: str = "decided") -> None:
        self.position, self.check = position, check
        super().__init__(position, message)

    def __str__(self) -> str:
        """Return the log position, then what is wrong there."""
        return f"log position {self.position}: {self.args[1]}"

    def _particulars(self) -> dict[str, str | int]:
        return {"position": self.position, "detail": _printable(str(self.args[1]), 1_000)}


class NewerVersion(Corrupt):
    """A row is as it was written, and has an event or a field that this version does not know.

    It stops a reader at its log position, as damage does, and nothing is wrong with the log: only this process is too
    old for it. It stops a writer alone if the row requires a newer version of those who write (`require_version`).

    >>> from forecast_ledger import NewerVersion
    >>> print(NewerVersion(7, "the row has an unknown field"))
    log position 7: the row has an unknown field; upgrade this process: a newer version wrote this row
    """

    kind = "newer_version"
    http_status = 503  # an upgraded process can answer
    meaning, remedy = "a newer version wrote to the log, which is not damaged", "upgrade this process"

    def __init__(self, position: int, message: str) -> None:
        super().__init__(position, message, "schemas")

    def __str__(self) -> str:
        """Return the log position, what this version does not know, and the remedy."""
        return f"{super().__str__()}; {self.remedy}: a newer version wrote this row"


# The classes of errors, in the order of the reference.
ERRORS: tuple[type[LedgerError], ...] = (
    Refused,
    Conflict,
    Unavailable,
    Behind,
    Absent,
    Uncertain,
    Corrupt,
    NewerVersion,
)
