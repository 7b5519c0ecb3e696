"""The options that settle what a table leaves open, and what they may be."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Wide = Literal["forecasters", "questions", "options", "quantiles"]
WIDES: tuple[str, ...] = get_args(Wide)
Meaning = Literal["yes", "no", "none", "void"]  # of the text of an answer; none: not known yet
MEANINGS: tuple[str, ...] = get_args(Meaning)
KINDS = ("binary", "multiple_choice", "numeric")  # of questions, in the order in which they are recorded


class Options(NamedTuple):
    """What the caller says about the tables; everything else is recognised, or refused if it is ambiguous.

    rules: a name in `rule_names`, "" for the usual one. contest: its id, "" for the name of the table. columns: role ->
    the names of its columns, none for a role that no column has. percent: probabilities are in percent. number: how
    1234.5 is written. day_first: of dates such as 03/04/2026; None if not said. instant: a format of strptime. zone: a
    time zone, or an offset from UTC. wide: what the columns of a wide table are. forecaster: who made all forecasts.
    opens, closes: when all questions open and close, as RFC 3339 or a date. made_at: when all forecasts were made, if
    no column says it. answers: text -> what it means. normalize: how far a sum of probabilities may be from 1, by which
    they are then divided; "" if it may not. independent: each option is a yes-or-no question of its own. kinds: of the
    questions that are scored, if a table has several; none for all of them. delimiter, encoding, sheet: as in a map.
    answers_sheet: that of the answers, if it is another.
    """

    rules: str = ""
    contest: str = ""
    columns: Mapping[str, tuple[str, ...]] = {}
    percent: bool = False
    number: str = ""
    day_first: bool | None = None
    instant: str = ""
    zone: str = ""
    wide: str = ""
    forecaster: str = ""
    opens: str = ""
    closes: str = ""
    made_at: str = ""
    answers: Mapping[str, str] = {}
    normalize: str = ""
    independent: bool = False
    kinds: tuple[str, ...] = ()
    delimiter: str = ""
    encoding: str = ""
    sheet: str = ""
    answers_sheet: str = ""
