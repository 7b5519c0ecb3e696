"""Replies: decisions to BET, SELL or HOLD, as fields of a command or as text; and the calls of models that gave them.

Source: Forecaster Arena, Methodology v1, "Decision Protocol".
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from itertools import accumulate
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct, json
from msgspec.structs import replace

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.events import Action, Bet, Sale
from forecast_ledger.ledger.model.trading_rules import PERCENT, WHOLE, Replies, Trading, bet_cap

_NOT_A_NUMBER = -(2**63)  # an amount or percentage that is not a number, or beyond every limit
_ACTIONS = get_args(Action)


class Reply(NamedTuple):
    """A decision as requested: an ASCII action in capitals, numbers in units, -2^63 for those that are not numbers."""

    action: str
    bets: tuple[Bet, ...]
    sells: tuple[Sale, ...]
    reasoning: str


class _Bet(Struct):
    market_id: str
    side: str
    amount: Any


class _Sale(Struct):
    position_id: str | int
    percentage: Any


class _Text(Struct):
    action: str
    bets: msgspec.Raw = msgspec.Raw(b"[]")
    sells: msgspec.Raw = msgspec.Raw(b"[]")
    reasoning: str = ""


_decoder = json.Decoder(_Text)
_bets = json.Decoder(list[_Bet] | None, float_hook=Decimal)
_sales = json.Decoder(list[_Sale] | None, float_hook=Decimal)
_encoder = json.Encoder(order="sorted", decimal_format="number")

_SPACES = "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_BLANKS = f"\t\n\v\f\r \xa0\u1680{_SPACES}\u2028\u2029\u202f\u205f\u3000\ufeff"  # white space, as in JavaScript
_FENCE = "```"
_OPENING_FENCE = re.compile(rf"{_FENCE}[{_BLANKS}]*(?:json)?", re.IGNORECASE)
_ACTION = '"action"'
_MOST_LEVELS = 500  # of lists and objects; Python itself reads 990 or 260,000, by its version and by who calls
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}  # in levels
_OTHERS = re.compile(r'"(?:[^"\\]++|\\.)*+\\?"?|[^"\[{\]}]++', re.DOTALL)  # texts, and what else is no step


def read_reply(text: str, rule: Replies = "strict", *, null_lists: bool = True) -> Reply | None:
    """Return the decision in the text of a reply, without its other fields; None if it cannot be read.

    rule: `strict`, a text that is one JSON object; or `lenient`, as Forecaster Arena's own parser reads it: the object
    in a text, and of its lists only the one that its action uses. null_lists: whether a list may be null, if empty.
    Source: setrf/forecasterarena, lib/openrouter/parser/clean.ts and parseDecision.ts.

    >>> read_reply('{"action": "hold", "reasoning": "Wait."}')
    Reply(action='HOLD', bets=(), sells=(), reasoning='Wait.')
    >>> read_reply('I wait: [{"action": "hold", "reasoning": "Wait."}]', "lenient")
    Reply(action='HOLD', bets=(), sells=(), reasoning='Wait.')
    """
    text = text if rule == "strict" else _object_text(text)
    if _is_deep(text):
        return None
    try:
        decision = _decoder.decode(text)
        action = decision.action.upper()
        bets = _bets.decode(decision.bets) if rule == "strict" or action == "BET" else []
        sells = _sales.decode(decision.sells) if rule == "strict" or action == "SELL" else []
    except (msgspec.DecodeError, InvalidOperation, UnicodeError):
        return None
    if (bets is None or sells is None) and not null_lists:
        return None
    for bet in bets or ():
        bet.amount = None if isinstance(bet.amount, str) else bet.amount
    for sale in sells or ():
        sale.percentage = None if isinstance(sale.percentage, str) else sale.percentage
    return _reply(decision.action, bets or (), sells or (), decision.reasoning)


def _is_deep(text: str) -> bool:
    """Return whether lists and objects in a text of JSON have more levels than are read."""
    if text.count("[") + text.count("{") <= _MOST_LEVELS:
        return False
    steps = map(_STEPS.__getitem__, _OTHERS.sub("", text))
    return max(accumulate(steps), default=0) > _MOST_LEVELS


def _object_text(text: str) -> str:
    r"""Return the text of the object in a reply: without a fence or quotes around it, and without text before it.

    If there is text before it, text after it does not count either; if there is none, the text after it stays, so that
    the reply cannot be read.

    >>> _object_text('```json\n{"action": "HOLD"}\n```'), _object_text('{"action": "HOLD"} Good luck!')
    ('{"action": "HOLD"}', '{"action": "HOLD"} Good luck!')
    """
    text = text.strip(_BLANKS)
    if opening := _OPENING_FENCE.match(text):
        text = text[opening.end() :].removesuffix(_FENCE).strip(_BLANKS)
    if text[:1] in {'"', "'"} and text[-1] == text[0]:
        text = text[1:-1].strip(_BLANKS)
    return text if text.startswith("{") else _embedded_object(text)


def _embedded_object(text: str) -> str:
    """Return the first part of a text that is in braces and has "action" in it; the whole text if there is none.

    Braces in strings do not count. A part starts outside of strings. The text is read once, from its end.
    """
    size, action = len(text), text.rfind(_ACTION)
    if action < 0 or "{" not in text[:action]:
        return text
    outside, inside = [size] * (size + 2), [size] * (size + 2)  # where the first unmatched } after each index is
    for index in range(size - 1, text.find("{"), -1):
        character = text[index]
        after = outside[index + 1]
        if character == '"':
            outside[index], inside[index] = inside[index + 1], after
            continue
        inside[index] = inside[index + 2 if character == "\\" else index + 1]
        outside[index] = index if character == "}" else outside[after + 1] if character == "{" else after
    actions = [match.start() for match in re.finditer(_ACTION, text)]
    for opening in re.finditer("{", text[:action]):
        end = outside[opening.end()]
        within = bisect_left(actions, opening.start())
        if end < size and actions[within] + len(_ACTION) <= end:
            return text[opening.start() : end + 1]
    return text


def reply_from_fields(command: commands.RecordDecision) -> Reply:
    """Return the decision in the fields of a command."""
    return _reply(command.action or "", command.bets or (), command.sells or (), command.reasoning or "")


def reply_text(command: commands.RecordDecision) -> str:
    """Return the decision in the fields of a command as the text of a reply."""
    fields = {name: getattr(command, name) for name in ("action", "bets", "sells", "reasoning")}
    return _encoder.encode({name: value for name, value in fields.items() if value is not None}).decode()


def first_fault(reply: Reply | None, trading: Trading, cash: int) -> str:
    """Return the first of REPLY_FAULTS that a reply has, given the participant's cash, 1e-6; empty if it has none.

    >>> first_fault(read_reply('{"action": "BET", "bets": [], "reasoning": "."}'), Trading(), 10**10)
    'no_legs'
    """
    if reply is None:
        return "unreadable"
    most = bet_cap(trading, cash)
    return next((name for name, is_wrong in _WRONG.items() if is_wrong(reply, trading, most)), "")


def fields_with_fault(fault: str, trading: Trading, cash: int) -> dict[str, Any]:
    """Return fields of a decision whose first fault is this one, given the participant's cash, 1e-6.

    Returns no fields if the fields of a command cannot have this fault.

    >>> fields_with_fault("no_legs", Trading(), 10**10)
    {'action': 'BET', 'bets': (), 'reasoning': '-'}
    """
    bet, sale = commands.Bet(market_id="-", side="-", amount=0), commands.Sale(position_id="1", percentage=101)
    most = Decimal(bet_cap(trading, cash)).scaleb(-6, WIDE)
    bets: dict[str, list[commands.Bet]] = {
        "no_legs": [],
        "blank_leg": [replace(bet, side="")],
        "bad_amount": [replace(bet, amount=values.LARGEST_POOL)],
        "below_least_bet": [bet],
        "above_cap": [replace(bet, amount=values.LARGEST_POOL // values.MONEY)],
        "above_sum_cap": [replace(bet, amount=most)] * 2,
    }
    if fault in bets:
        return {"action": "BET", "bets": tuple(bets[fault]), "reasoning": "-"}
    made: dict[str, dict[str, Any]] = {
        "unknown_action": {"action": "-"},
        "no_reasoning": {"action": "HOLD"},
        "mixed_legs": {"action": "HOLD", "bets": (bet,), "reasoning": "-"},
        "bad_percentage": {
            "action": "SELL",
            "sells": (sale,),
            "reasoning": "-",
        },
    }
    return made.get(fault, {})


_WRONG: dict[str, Callable[[Reply, Trading, int], bool]] = {
    "unknown_action": lambda reply, _, __: reply.action not in _ACTIONS,
    "no_reasoning": lambda reply, _, __: not reply.reasoning.strip(),
    "no_legs": lambda reply, _, __: not {"BET": reply.bets, "SELL": reply.sells, "HOLD": (0,)}[reply.action],
    "mixed_legs": lambda reply, _, __: (
        bool(reply.action != "BET" and reply.bets) or bool(reply.action != "SELL" and reply.sells)
    ),
    "blank_leg": lambda reply, _, __: (
        not all(
            [
                *(bet.question.strip() and bet.side.strip() for bet in reply.bets),
                *(s.position.strip() for s in reply.sells),
            ]
        )
    ),
    "bad_amount": lambda reply, _, __: any(bet.amount == _NOT_A_NUMBER for bet in reply.bets),
    "below_least_bet": lambda reply, trading, _: any(bet.amount < trading.least_bet_micros for bet in reply.bets),
    "above_cap": lambda reply, _, most: any(bet.amount > most for bet in reply.bets),
    "above_sum_cap": lambda reply, trading, most: trading.sum_capped and sum(bet.amount for bet in reply.bets) > most,
    "bad_percentage": lambda reply, trading, _: (
        not all(trading.least_percentage_micros <= sale.percentage <= WHOLE for sale in reply.sells)
    ),
}


def _reply(
    action: str,
    bets: Iterable[_Bet | commands.Bet],
    sells: Iterable[_Sale | commands.Sale],
    reasoning: str,
) -> Reply:
    """Return the reply with sides and ids as written, and the action in capitals."""
    purchases = tuple(
        Bet(question=bet.market_id, side=bet.side, amount=_in_units(bet.amount, values.MONEY)) for bet in bets
    )
    sales = tuple(Sale(position=str(s.position_id), percentage=_in_units(s.percentage, PERCENT)) for s in sells)
    return Reply(action.upper() if action.isascii() else action, purchases, sales, reasoning)


def _in_units(number: Any, unit: int) -> int:
    """Return a number in 1/unit; -2^63 if it is not a number, or beyond every limit."""
    try:
        return values.read_fixed(number, unit, "amount", -values.LARGEST_POOL, values.LARGEST_POOL)
    except Refused:
        return _NOT_A_NUMBER


# --- calls of models

LARGEST_COUNT = 10**12  # tokens, or milliseconds


def text_digest(text: str | None) -> str:
    """Return the digest by which a decision refers to a text that the log keeps; empty for None.

    >>> text_digest(None), text_digest("HOLD")[:8]
    ('', 'aacf94b7')
    """
    return "" if text is None else sha256(text.encode()).hexdigest()


def setting_text(value: Any, name: str) -> str:
    """Return a setting as text: a number in plain decimals, true or false as in JSON.

    Refuses: malformed (none of these), and those of a text or a number.

    >>> setting_text("high", "settings"), setting_text(0.70, "settings"), setting_text(True, "settings")
    ('high', '0.7', 'true')
    """
    if isinstance(value, str):
        return values.check_text(value, name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, dict | list | tuple):
        raise Refused("malformed", name, None, "not a text, a number, true or false")
    return values.exact_text(values.read_measure(value, name))


def settings_texts(settings: dict[str, Any] | None, name: str) -> dict[str, str]:
    """Return settings as texts, sorted by name. Refuses also: text_too_long (all of them together)."""
    given = {values.check_text(key, name): value for key, value in (settings or {}).items()}
    texts = {key: setting_text(given[key], name) for key in sorted(given)}
    values.check_text("".join([*texts, *texts.values()]), name)
    return texts


def recorded_call(call: commands.ModelCall | None) -> tuple[events.ModelCall | None, str | None]:
    """Return a call in integers, and the text that lists the markets shown, one id a line; None for what is not given.

    Refuses: out_of_range, or malformed (no field is given).
    """
    if call is None:
        return None, None
    shown = "\n".join(call.shown) if call.shown else None
    recorded = events.ModelCall(
        input_tokens=_count(call.input_tokens, "call.input_tokens"),
        output_tokens=_count(call.output_tokens, "call.output_tokens"),
        cost=None
        if call.cost is None
        else values.read_fixed(call.cost, values.MONEY, "call.cost", 0, values.LARGEST_POOL),
        latency_ms=_count(call.latency_ms, "call.latency_ms"),
        settings=settings_texts(call.settings, "call.settings"),
        shown=text_digest(shown),
    )
    if recorded == events.ModelCall():
        raise Refused("malformed", "call", None, "give one or more fields of the call, or leave it out")
    return recorded, shown


def _count(number: int | None, name: str) -> int | None:
    return None if number is None else values.read_fixed(number, 1, name, 0, LARGEST_COUNT)
