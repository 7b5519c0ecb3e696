"""Replies: decisions to BET, SELL or HOLD, as fields of a command or as text.

Source: Forecaster Arena, Methodology v1, "Decision Protocol".
"""

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct, json
from msgspec.structs import replace

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.events import Action, Bet, Sale
from forecast_ledger.ledger.model.trading_rules import PERCENT, WHOLE, Trading, bet_cap

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
    bets: list[_Bet] = []
    sells: list[_Sale] = []
    reasoning: str = ""


_decoder = json.Decoder(_Text, float_hook=Decimal)
_encoder = json.Encoder(order="sorted", decimal_format="number")


def read_reply(text: str) -> Reply | None:
    """Return the decision in a text of one JSON object, without its other fields; None if it cannot be read.

    >>> read_reply('{"action": "hold", "reasoning": "Wait."}')
    Reply(action='HOLD', bets=(), sells=(), reasoning='Wait.')
    """
    try:
        decision = _decoder.decode(text)
    except (msgspec.DecodeError, InvalidOperation, RecursionError, UnicodeError):
        return None
    for bet in decision.bets:
        bet.amount = None if isinstance(bet.amount, str) else bet.amount
    for sale in decision.sells:
        sale.percentage = None if isinstance(sale.percentage, str) else sale.percentage
    return _reply(decision.action, decision.bets, decision.sells, decision.reasoning)


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
    return next((name for name, is_wrong in _WRONG.items() if is_wrong(reply, trading, bet_cap(trading, cash))), "")


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
    "below_least_bet": lambda reply, trading, _: any(bet.amount < trading.least_bet for bet in reply.bets),
    "above_cap": lambda reply, _, most: any(bet.amount > most for bet in reply.bets),
    "above_sum_cap": lambda reply, trading, most: trading.sum_capped and sum(bet.amount for bet in reply.bets) > most,
    "bad_percentage": lambda reply, trading, _: (
        not all(trading.least_percentage <= sale.percentage <= WHOLE for sale in reply.sells)
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
