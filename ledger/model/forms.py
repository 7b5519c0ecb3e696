"""The forms of values in a command: numbers, instants, ids and texts, each with its JSON Schema.

Reading JSON checks only the types; the decider checks the rest, with a code for each fault. The schema describes both.
A number is rounded half-even to its unit before its bounds are checked, so the bounds of the schema lie half a unit
beyond those of the description. A pattern cannot check the bounds of a number that is written as text.
"""

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.model import publication_stamps
from forecast_ledger.ledger.model.program_versions import VERSION_LENGTH, WRITTEN_VERSION
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import CURRENCY

_DECIMAL: dict[str, Any] = {"type": ["number", "string"], "pattern": f"^{values.WRITTEN_NUMBER}$"}
_VISIBLE = r"[^\u0000-\u0020\u007f-\u00a0\u00ad]"
_WITHIN = r"[^\u0000-\u001f\u007f-\u00a0\u00ad]"

Method = Literal["linear", "monotone_cubic", "metaculus-2026-04"]  # from points to a cdf
Normalizing = Literal["by_sum"]  # from shares to probabilities

# name -> schema. `help commands` prints the description.
FORMS: dict[str, dict[str, Any]] = {}


def _form(name: str, description: str, said: str = "", **schema: Any) -> Meta:
    """Add a form to FORMS and return it as the annotation of a type. said: the unit of a number, in words."""
    FORMS[name] = {"title": name, "description": description, **schema}
    return Meta(extra_json_schema=FORMS[name], extra={"unit": said} if said else None)


def _decimal(name: str, description: str, unit: int, within: tuple[int, int], said: str) -> Meta:
    """Add the form of a number within two bounds, in 1/unit, after rounding half-even: a tie rounds to even."""
    low, high = within
    least, most = (Decimal(5 * (2 * bound + side)).scaleb(-len(str(unit))) for bound, side in ((low, -1), (high, 1)))
    bounds = {
        "exclusiveMinimum" if low % 2 else "minimum": least,
        "exclusiveMaximum" if high % 2 else "maximum": most,
    }
    return _form(name, description, said, **_DECIMAL, **bounds)


_SHARE_OF_ONE, _CURRENCY = "a share of 1", CURRENCY["unit"]
_LARGEST = int(values.LARGEST_NUMBER)
_NUMBER = _form("Number", "a JSON number, or its decimal text, such as 0.25 or 1e-3", **_DECIMAL)
_MEASURE = _form(
    "Measure",
    "a number within 1e30, with at most 1,000 decimals",
    "the question's unit",
    **_DECIMAL,
    minimum=-_LARGEST,
    maximum=_LARGEST,
)
_QUANTITY = _form(
    "Quantity",
    "a Measure; of a date question a date, an instant, or seconds since 1970",
    "the question's unit; of a date question seconds since 1970",
    **(_DECIMAL | {"pattern": f"^({values.WRITTEN_NUMBER}|{values.WRITTEN_DATE})$|{values.WRITTEN_INSTANT}"}),
    minimum=-_LARGEST,
    maximum=_LARGEST,
)
_PROBABILITY = _decimal(
    "Probability",
    "a number from 0 to 1, rounded to 9 decimals",
    values.PROBABILITY,
    (0, values.PROBABILITY),
    _SHARE_OF_ONE,
)
_PAYOUT = _form(
    "Payout",
    "a Probability, or a fraction of two whole numbers from 0 to 1 as text, such as 1/3, which is exact",
    _SHARE_OF_ONE,
    **(_DECIMAL | {"pattern": f"^({values.WRITTEN_NUMBER}|{values.WRITTEN_FRACTION})$"}),
    minimum=FORMS["Probability"]["minimum"],
    maximum=FORMS["Probability"]["maximum"],
)
_CUMULATIVE = _decimal(
    "Cumulative",
    "a number from 0 to 1, rounded to 10 decimals",
    values.CUMULATIVE,
    (0, values.CUMULATIVE),
    _SHARE_OF_ONE,
)
_QUANTILE_LEVEL = _decimal(
    "QuantileLevel",
    "a number above 0 and below 1, rounded to 9 decimals",
    values.PROBABILITY,
    (1, values.PROBABILITY - 1),
    _SHARE_OF_ONE,
)
_POOL = _decimal(
    "Pool",
    "money from 0 to 1,000,000,000,000, rounded to 6 decimals",
    values.MONEY,
    (0, values.LARGEST_POOL),
    _CURRENCY,
)
_PAYABLE_UNIT = _decimal(
    "PayableUnit",
    "money from 0.000001 to 1,000,000,000,000, rounded to 6 decimals",
    values.MONEY,
    (1, values.LARGEST_POOL),
    _CURRENCY,
)
_DEPOSIT = _decimal(
    "Deposit",
    "money from 0.000001 to 1,000,000,000, rounded to 6 decimals",
    values.MONEY,
    (1, values.LARGEST_CASH),
    _CURRENCY,
)
_WITHDRAWAL = _decimal(
    "Withdrawal",
    "money from 0.000001 to 1,000,000,000,000, rounded to 6 decimals",
    values.MONEY,
    (1, values.LARGEST_HOLDING),
    _CURRENCY,
)
_TRADED_SHARES = _decimal(
    "TradedShares",
    "shares from 0.000001 to 1,000,000,000,000, rounded to 6 decimals",
    values.MONEY,
    (1, values.LARGEST_HOLDING),
    "shares",
)
_WEIGHT = _decimal(
    "Weight",
    "a number from 0 to 1,000,000, rounded to 6 decimals",
    values.WEIGHT,
    (0, values.LARGEST_WEIGHT),
    "a factor",
)
_SHARE = _decimal(
    "Share", "a number from 0 to 1, rounded to 6 decimals", values.WEIGHT, (0, values.WEIGHT), _SHARE_OF_ONE
)
_INSTANT = _form(
    "Instant", "an RFC 3339 instant with an offset, such as 2026-03-01T09:30:00Z", pattern=values.WRITTEN_INSTANT
)
_STAMP = _form(
    "Stamp",
    "a year, month or date, or a date and a time, each with or without an offset, such as 2021-12",
    pattern=publication_stamps.WRITTEN_STAMP,
)
_ID = _form(
    "Id",
    f"1 to {values.ID_LENGTH} printable characters in Unicode form NFC, with no space at either end; "
    "those of a new id can all be seen",
    minLength=1,
    maxLength=values.ID_LENGTH,
    pattern=f"^{_VISIBLE}({_WITHIN}*{_VISIBLE})?$",
)
_TEXT = _form("Text", f"at most {values.TEXT_LENGTH:,} characters", maxLength=values.TEXT_LENGTH)
_LINE = _form(
    "Line",
    f"at most {values.LINE_LENGTH:,} characters that can all be printed and seen, in Unicode form NFC",
    maxLength=values.LINE_LENGTH,
    pattern=f"^{_WITHIN}*$",
)
_URL = _form(
    "Url",
    f"an address that begins with http:// or https://, at most {values.LINE_LENGTH:,} characters",
    maxLength=values.LINE_LENGTH,
    pattern=f"^({values.WRITTEN_URL})?$",
)
_SHA256 = _form("Sha256", "64 hexadecimal digits", pattern="^([0-9A-Fa-f]{64})?$")
_VERSION = _form(
    "Version",
    f"a version in the normal form of Python packages, such as 0.3.0 or 1.0rc1, at most {VERSION_LENGTH} characters",
    maxLength=VERSION_LENGTH,
    pattern=f"^{WRITTEN_VERSION}$",
)
_LONG_TEXT = _form("LongText", f"at most {values.LONG_TEXT_LENGTH:,} characters", maxLength=values.LONG_TEXT_LENGTH)
_BINS = _form("Bins", f"1 to {values.MOST_BINS:,}", "bins", minimum=1, maximum=values.MOST_BINS)
_SAMPLES = _form("Samples", f"1 to {values.MOST_BINS:,}", "samples", minimum=1, maximum=values.MOST_BINS)
_SPOT_WEIGHT = _form(
    "SpotWeight", f"1 to {values.LARGEST_SPOT_WEIGHT:,}", "a factor", minimum=1, maximum=values.LARGEST_SPOT_WEIGHT
)
_DECIMALS = _form("Decimals", f"0 to {values.MOST_DECIMALS}", "decimals", minimum=0, maximum=values.MOST_DECIMALS)
_COUNT = _form("Count", "0 to 1,000,000,000,000", minimum=0, maximum=10**12)
_SETTING = _form(
    "Setting", "a text, a number, true or false", "as the model takes it", type=["string", "number", "boolean"]
)
_PRESET = _form("Preset", "the name of a preset", enum=list(PRESETS))

if TYPE_CHECKING:  # the types that a caller may pass
    Number = values.Number
    Money = values.Number
    Shares = values.Number
    Percentage = values.Number
    Instant = values.Instant
    Measure = Number
    Quantity = Number
    Probability = Number
    Payout = Number
    Cumulative = Number
    QuantileLevel = Number
    Weight = Number
    Share = Number
    Pool = Number
    PayableUnit = Number
    Deposit = Number
    Withdrawal = Number
    TradedShares = Number
    Stamp = str
    Id = str
    Text = str
    LongText = str
    Line = str
    Url = str
    Sha256 = str
    Version = str
    Preset = str
    Bins = int
    Samples = int
    Decimals = int
    SpotWeight = int
    Tokens = int
    Milliseconds = int
    Period = int
    Attempt = int
    PositionNumber = int
    Setting = Any
else:  # the types that a decoder returns
    Number = Annotated[values.Number, _NUMBER]
    Money = Annotated[values.Number, _NUMBER, Meta(extra=CURRENCY)]
    Shares = Annotated[values.Number, _NUMBER, Meta(extra={"unit": "shares"})]
    Percentage = Annotated[values.Number, _NUMBER, Meta(extra={"unit": "percent"})]
    Measure = Annotated[values.Number, _MEASURE]
    Quantity = Annotated[values.Number, _QUANTITY]
    Probability = Annotated[values.Number, _PROBABILITY]
    Payout = Annotated[values.Number, _PAYOUT]
    Cumulative = Annotated[values.Number, _CUMULATIVE]
    QuantileLevel = Annotated[values.Number, _QUANTILE_LEVEL]
    Weight = Annotated[values.Number, _WEIGHT]
    Share = Annotated[values.Number, _SHARE]
    Pool = Annotated[values.Number, _POOL]
    PayableUnit = Annotated[values.Number, _PAYABLE_UNIT]
    Deposit = Annotated[values.Number, _DEPOSIT]
    Withdrawal = Annotated[values.Number, _WITHDRAWAL]
    TradedShares = Annotated[values.Number, _TRADED_SHARES]
    Instant = Annotated[values.Instant, _INSTANT]
    Stamp = Annotated[str, _STAMP]
    Id = Annotated[str, _ID]
    Text = Annotated[str, _TEXT]
    LongText = Annotated[str, _LONG_TEXT]
    Line = Annotated[str, _LINE]
    Url = Annotated[str, _URL]
    Sha256 = Annotated[str, _SHA256]
    Version = Annotated[str, _VERSION]
    Preset = Annotated[str, _PRESET]
    Bins = Annotated[int, _BINS]
    Samples = Annotated[int, _SAMPLES]
    Decimals = Annotated[int, _DECIMALS]
    SpotWeight = Annotated[int, _SPOT_WEIGHT]
    Tokens = Annotated[int, _COUNT, Meta(extra={"unit": "tokens"})]
    Milliseconds = Annotated[int, _COUNT, Meta(extra={"unit": "milliseconds"})]
    Period = Annotated[int, Meta(extra={"unit": "the number of a period"})]
    Attempt = Annotated[int, Meta(extra={"unit": "the number of an attempt"})]
    PositionNumber = Annotated[int, Meta(extra={"unit": "the number of a position"})]
    Setting = Annotated[Any, _SETTING]


class ModelCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a model. Give one or more fields."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cost: Pool | None = None
    latency_ms: Milliseconds | None = None
    settings: dict[Text, Setting] | None = None
    shown: tuple[Id, ...] | None = None


class Attestation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A declaration about the information behind a forecast; stamps keep the precision they were given in."""

    newest_source: Stamp | None = None
    model_released: Stamp | None = None
    training_cutoff: Stamp | None = None
    restricted_sources: bool | None = None
    restricted_list: Text = ""
    note: Text = ""


class Sale(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A sale of shares of an open position."""

    position_id: Text | PositionNumber
    percentage: Percentage


class Spot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One of several instants that count of a question, and how many times it counts."""

    at: Instant
    weight: SpotWeight = 1


class Bet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A purchase of shares of one outcome of a question."""

    market_id: Text
    side: Text
    amount: Money


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The prices of one question, and what buyers bid and sellers ask."""

    question: Id
    prices: dict[Id, Probability] | None = None
    bids: dict[Id, Probability] | None = None
    asks: dict[Id, Probability] | None = None
    bid_sizes: dict[Id, Shares] | None = None
    ask_sizes: dict[Id, Shares] | None = None


class StatedPoints(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The points that a cdf was made from: the quantile at each level, and the method between them."""

    levels: tuple[int, ...]
    quantiles: tuple[str, ...]
    method: Method


class StatedShares(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """The shares that probabilities were made from, in the order of the question's outcomes, and the rule."""

    shares: tuple[int, ...]
    rule: Normalizing


class NumericRange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A range of equal bins, the levels of quantiles, or a number of samples.

    With zero_point, bins are equal in the logarithm of the distance from it. Outcome 0 is below the range, 1 to bins
    are inside, bins + 1 is above; without bins, 1 is inside and 2 above.
    """

    lower: str
    upper: str
    bins: int = 0
    open_lower: bool = False
    open_upper: bool = False
    zero_point: str | None = None
    levels: tuple[int, ...] = ()
    decimals: int = 0
    samples: int = 0

    @property
    def measures(self) -> int:
        """How many quantiles or samples a forecast has, in 10^-decimals; 0 if it is a cdf."""
        return len(self.levels) or self.samples

    @property
    def furthest(self) -> Fraction:
        """The greatest distance between two quantiles, samples or answers that a question may have."""
        beyond = Fraction(values.LARGEST_MEASURE, 10**self.decimals)
        least = -beyond if self.open_lower else Fraction(self.lower)
        return (beyond if self.open_upper else Fraction(self.upper)) - least
