"""Random histories of trading contests as commands, most of which fit, with what the model makes of each of them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import msgspec

from forecast_ledger.ledger.model.commands import AnyCommand, read
from tests.support.trading_model import Book
from tests.support.trading_parts import (
    DAY,
    MONEY,
    ONE,
    PERCENT,
    SECOND,
    Again,
    Contest,
    Outcome,
    Position,
    Refusal,
    read_trading,
    units,
    written_trading,
)

Told = dict[str, Any]  # one command, as a line of JSON holds it
SUNDAY = 20_513 * DAY  # 2026-03-01
HOUR = 3_600 * SECOND
PEOPLE = ("ada", "bo", "cy")
STEPS = (0, 0, SECOND, 10 * 60 * SECOND, HOUR, 6 * HOUR, 20 * HOUR, 3 * DAY, 7 * DAY)
PRICES = (
    "0",
    "0.000000001",
    "0.01",
    "0.1",
    "0.25",
    "0.333333333",
    "0.4",
    "0.5",
    "0.612345679",
    "0.9",
    "0.999999999",
    "1",
)
PARTS = ("100", "100", "100", "50", "50", "33.333333", "1", "99.999999", "12.5", "25")
ODD = (  # replies as texts: most cannot be read, some can in part
    "I would rather HOLD.",
    "{",
    "null",
    '"HOLD"',
    '[{"action": "HOLD", "reasoning": "an array"}]',
    '```json\n{"action": "HOLD", "reasoning": "a fence"}\n```',
    '{"action": "HOLD", "reasoning": "more follows"} as I said',
    '{"action": "HOLD", "reasoning": 7}',
    '{"action": "HOLD", "reasoning": null}',
    '{"action": "HOLD"}',
    '{"action": null, "reasoning": "no action"}',
    '{"reasoning": "no action"}',
    '{"action": "BET", "bets": "all of it", "reasoning": "no list"}',
    '{"action": "BET", "bets": null, "reasoning": "no list"}',
    '{"action": "BET", "bets": ["rain"], "reasoning": "no objects"}',
    '{"action": "BET", "bets": [{"market_id": "q1", "amount": 100}], "reasoning": "no side"}',
    '{"action": "BET", "bets": [{"market_id": 1, "side": "yes", "amount": 100}], "reasoning": "a number"}',
    '{"action": "BET", "bets": [{"market_id": "q1", "side": "yes", "amount": NaN}], "reasoning": "no JSON"}',
    '{"action": "BET", "bets": [{"market_id": "q1", "side": "yes", "amount": "100"}], "reasoning": "a text"}',
    '{"action": "BET", "bets": [{"market_id": "q1", "side": "yes", "amount": true}], "reasoning": "no number"}',
    '{"action": "BET", "bets": [{"market_id": "q1", "side": "yes", "amount": 1e9999}], "reasoning": "much"}',
    '{"action": "SELL", "sells": [{"position_id": true, "percentage": 50}], "reasoning": "no number"}',
    '{"action": "SELL", "sells": [{"position_id": "01", "percentage": 50}], "reasoning": "no position"}',
    ' {"action": "HOLD", "bets": [], "reasoning": "more is said", "confidence": 0.5}\n',
)
SCORED = {"kernel": "brier", "period": "covered", "total": "mean", "least_probability_ppm": 0}
CHOICES: dict[str, tuple[Any, ...]] = {
    "starting_cash": (10_000 * MONEY, 1_000 * MONEY, 333_333_333, 100_000 * MONEY + 1),
    "least_bet": (50 * MONEY, MONEY, 1),
    "cap_divisor": (1, 1, 2, 3, 4, 7),
    "least_percentage": (PERCENT, 1, 10 * PERCENT),
    "legs": ("independent", "all_or_nothing"),
    "sum_capped": (False, True),
    "attempts": (1, 2, 3),
    "stale_after_seconds": (0, 3_600, 3_600, 86_400),
    "snapshot_seconds": (3_600, 86_400, 7_777),
    "period_days": (0, 0, 0, 1, 7),
    "cohorts": ("none", "weekly"),
    "recapitalisation": (False, True, True),
    "closed_marks": ("prior", "last"),
}
FEES: tuple[Told, ...] = (
    {},
    {"fee_rate_ppm": 70_000, "fee_unit": 10_000, "fee_rounding": "cash"},
    {"fee_rate_ppm": 70_000, "fee_unit": 10_000, "fee_rounding": "up"},
    {"fee_rate_ppm": 50_000, "fee_unit": 10, "fee_rounding": "down"},
    {"fee_rate_ppm": 1_000_000, "fee_unit": 10**8, "fee_rounding": "up"},
    {"fee_rate_ppm": 250_000, "fee_exponent": 2, "fee_unit": 1_000, "fee_rounding": "half_even"},
)
SIDES = ("prices", "bids", "asks", "bid_sizes", "ask_sizes")
FILLS: tuple[Told, ...] = (
    {},
    {"marks": "bid"},
    *[{"fills": "bid_ask", "marks": marks} for marks in ("price", "bid", "bid")],
)


# --- one command told to the model


def micros_of(text: str) -> int:
    """An instant in µs."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def stamp(at: int) -> str:
    """An instant as text."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def model_outcome(book: Book, command: Told) -> Outcome:
    """The model's outcome for a command; the ids of commands are ignored."""
    fields = {name: value for name, value in command.items() if name not in {"id", "type"}}
    for name in ("at", "opens_at", "closes_at", "starts_at", "quoted_at"):
        if name in fields:
            fields[name] = micros_of(fields[name])
    return _METHODS[command["type"]](book, fields)


def _open_question(book: Book, fields: Told) -> Outcome:
    period = {"opens": fields["opens_at"], "closes": fields["closes_at"], "outcomes": fields.get("outcomes", ())}
    return book.open_question(fields["at"], fields["question"], fields["kind"], **period)


def _open_contest(book: Book, fields: Told) -> Outcome:
    rules = fields.pop("rules")
    presets: dict[str, Any] = {
        "arena-v1": {},
        "arena-v2": {"legs": "all_or_nothing", "sum_capped": True, "deciding_cohorts": 5},
        "brier-daily": None,
    }
    trading = presets[rules] if isinstance(rules, str) else read_trading(rules["trading"])
    return book.open_contest(trading=trading, **fields)


def _quote(book: Book, fields: Told) -> Outcome:
    rows = [
        (each["question"], {side: each[side] for side in SIDES if side in each})
        for each in fields.get("quotes", [fields])
    ]
    return book.quoted(fields["at"], rows, fields["source"], fields["quoted_at"])


def _cancel(book: Book, fields: Told) -> Outcome:
    given: Told = {"policy": "refund_cost"} | fields
    return book.cancel(**given)


_METHODS: dict[str, Callable[[Book, Told], Outcome]] = {
    "open_question": _open_question,
    "close_question": lambda book, fields: book.close(**fields),
    "open_contest": _open_contest,
    "add_question": lambda book, fields: book.add_question(**fields),
    "enrol_participant": lambda book, fields: book.enrol(**fields),
    "finalize_contest": lambda book, fields: book.finalize(**fields),
    "quote": _quote,
    "record_decision": lambda book, fields: book.record_decision(**fields),
    "deposit_cash": lambda book, fields: book.deposit(**fields),
    "withdraw_cash": lambda book, fields: book.withdraw(**fields),
    "resolve_question": lambda book, fields: book.resolve(**fields),
    "annul_question": _cancel,
    "cancel_market": _cancel,
    "revoke_resolution": lambda book, fields: book.revoke(**fields),
}


def text_of(number: int, unit: int = MONEY) -> str:
    """An integer in 1/unit as decimal text."""
    return format((Decimal(number) / unit).normalize(), "f")


def plain(number: int, unit: int = MONEY) -> int | float:
    """The same as a JSON number."""
    return number // unit if number % unit == 0 else float(text_of(number, unit))


def _with_sides(quote: Told) -> Told:
    """A quote with bids and asks around some of its prices, perhaps without the prices; the same for the same quote."""
    random = Random(str(quote))
    prices = {name: round(Fraction(str(price)) * ONE) for name, price in quote["prices"].items()}
    if random.random() < 0.2 or max(prices.values()) > ONE:
        return quote
    sides: dict[str, dict[str, str]] = {"bids": {}, "asks": {}}
    for name, price in prices.items():
        away = random.choice([0, 1, 10**6, 10**7, 10**8])
        low, high = max(price - away, 0), min(price + random.choice([0, 1, away]), ONE)
        if random.random() < 0.01:
            low, high = high, low
        for side, at in (("bids", low), ("asks", high)):
            if random.random() < 0.93:
                sides[side][name] = text_of(at, ONE)
    given: Told = {side: row for side, row in sides.items() if row}
    alone = bool(given) and random.random() < 0.5
    for size in ("bid_sizes", "ask_sizes"):
        if random.random() < 0.7:
            given[size] = {name: random.choice([0, "0.000001", 100, "777.777777", 10**6]) for name in prices}
    return ({"question": quote["question"]} if alone else quote) | given


# --- a history


class Season:
    """Commands drawn from seeded random numbers, each with what the model answered.

    fees: some rules have them. sides: some quotes have bids and asks, and sizes, and some rules use them. later: some
    rules allow shares against an outcome, some bets buy them, and some cancelled markets refund stakes. The other draws
    are as without these.
    """

    def __init__(
        self, seed: int, steps: int = 120, *, fees: bool = False, sides: bool = False, later: bool = False
    ) -> None:
        self.random, self.fees, self.sides, self.later = Random(seed), fees, sides, later
        self.book = Book()
        self.now = SUNDAY + self.random.choice([0, 5 * 60 * SECOND, 3 * DAY + HOUR])
        self.attempts: list[tuple[Told, Outcome]] = []
        self.decisions: list[Told] = []
        self._begin()
        for _ in range(steps):
            self._step()
        self._end()

    def say(self, command: str, /, at: int | None = None, **fields: Any) -> Outcome:
        """One more command under an id of its own."""
        given = {name: value for name, value in fields.items() if value is not None}
        instant = stamp(self.now if at is None else at)
        return self._attempt({"id": f"c{len(self.attempts)}", "type": command, "at": instant, **given})

    def commands(self) -> list[AnyCommand]:
        """What was said, as commands; some are sent again, and some are refused."""
        return [read(msgspec.json.encode(command)) for command, _ in self.attempts]

    def _attempt(self, command: Told) -> Outcome:
        outcome = model_outcome(self.book, command)
        self.attempts.append((command, outcome))
        return outcome

    def chance(self, share: float) -> bool:
        """True in about so many of one."""
        return self.random.random() < share

    # --- beginning, middle and end

    def _begin(self) -> None:
        for _ in range(4):
            self._question()
        rules: list[str | Told] = ["arena-v1", "arena-v2", self._rules(), self._rules(), "brier-daily"]
        for number, each in enumerate(self.random.sample(rules, 4)):
            self._contest(f"k{number}", each)
        if not any(each.trading for each in self.book.contests.values()):
            self._contest("k9", "arena-v1")

    def _step(self) -> None:
        self.now += self.random.choice(STEPS[: self.random.randint(1, len(STEPS))])
        moves: list[tuple[int, Callable[[], object]]] = [
            (50, self._decide),
            (8, self._quotes),
            (3, self._resolve),
            (3, self._revoke),
            (3, self._cancel),
            (1, self._close),
            (5, self._question),
            (4, self._next_cohort),
            (1, self._enrol_somebody),
            (5, self._move_cash),
            (2, self._finalize),
            (5, self._again),
            (1, self._nonsense),
        ]
        self.random.choices([move for _, move in moves], [weight for weight, _ in moves])[0]()

    def _end(self) -> None:
        """Most questions are answered, contests end where they can."""
        self.now += DAY
        for question in sorted(self.book.questions):
            if self.chance(0.8):
                self._resolve(question)
        for contest in sorted(self.book.contests):
            self.say("finalize_contest", contest=contest)
        self._revoke()
        self._decide()

    # --- questions and contests

    def _question(self) -> None:
        random, number = self.random, len(self.book.questions)
        opens = self.now + random.choice([-DAY, -DAY, -DAY, 0, 5 * HOUR])
        period: Told = {"opens_at": stamp(opens), "closes_at": stamp(self.now + random.choice([1, 5, 20, 40]) * DAY)}
        named = random.choice([["red", "green", "blue"], ["Yes", "No"], ["a", "b", "c", "d"]])
        kind, outcomes = random.choice([("binary", None), ("multiple_choice", named)])
        self.say("open_question", question=f"q{number}", kind=kind, outcomes=outcomes, **period)
        for contest in sorted(self.book.contests):
            if self.chance(0.8):
                self.say("add_question", contest=contest, question=f"q{number}")

    def _rules(self) -> Told:
        """Rules of their own; a series can stop deciding only where there are weekly cohorts."""
        drawn = {name: self.random.choice(choices) for name, choices in CHOICES.items()}
        if drawn["cohorts"] == "weekly":
            drawn["deciding_cohorts"] = self.random.choice([0, 1, 1, 2])
        if self.fees:
            drawn |= Random(str(drawn)).choice(FEES)  # the other draws are as without fees
        if self.sides:
            drawn |= Random(f"sides {drawn}").choice(FILLS)
            drawn["depth"] = Random(f"depth {drawn}").choice(["unlimited", "refuse", "partial", "partial"])
        if self.later:
            drawn["shares_against"] = Random(f"against {drawn}").random() < 0.8
        return {"name": "drawn", **SCORED, "trading": written_trading(drawn)}

    def _contest(self, name: str, rules: str | Told) -> None:
        random, staked = self.random, rules != "brier-daily"
        starts = random.choice([None, None, self.now - HOUR, self.now - 3 * DAY]) if staked else None
        series = random.choice([None, "north", "north"]) if staked else None
        pool = random.choice([None, 100, "250.50"])
        when = None if starts is None else stamp(starts)
        opened = self.say("open_contest", contest=name, rules=rules, starts_at=when, series=series, pool=pool)
        if isinstance(opened, Refusal):
            return
        for question in sorted(self.book.questions):
            if self.chance(0.9):
                self.say("add_question", contest=name, question=question)
        for person in random.sample(PEOPLE, random.choice([2, 2, 3])):
            who: Told = {"family": random.choice([None, "fam", "other"]), "release": random.choice([None, "r1", "r2"])}
            self.say("enrol_participant", contest=name, participant=person, **who)

    def _next_cohort(self) -> None:
        """Another contest, perhaps under the rules of one that there is."""
        choices: list[str | Told] = ["arena-v1", "arena-v2", self._rules(), self._rules()]
        if len(self.book.contests) < 10:
            self._contest(f"k{len(self.book.contests)}x", self.random.choice(choices))

    def _enrol_somebody(self) -> None:
        contest, person = self.random.choice(sorted(self.book.contests)), self.random.choice(PEOPLE)
        self.say("enrol_participant", contest=contest, participant=person)

    def _finalize(self) -> None:
        self.say("finalize_contest", contest=self.random.choice(sorted(self.book.contests)))

    def _close(self) -> None:
        self.say("close_question", question=self.random.choice(sorted(self.book.questions)))

    # --- quotes

    def _quotes(self, fresh: bool = False) -> None:
        """Prices of some questions, alone or together; as of now, or of some time ago."""
        random, names = self.random, sorted(self.book.questions)
        late = 0 if fresh else random.choice([0, 0, SECOND, HOUR, HOUR + 1, 30 * HOUR, -SECOND])
        chosen = random.sample(names, random.randint(1, len(names)))
        if fresh:
            chosen = [each for each in names if self.chance(0.9)] or names
        quotes: list[Told] = [{"question": each, "prices": self._prices(each)} for each in chosen]
        if self.sides:
            quotes = [_with_sides(each) for each in quotes]
        fields: Told = {"source": random.choice(["gamma", "book"]), "quoted_at": stamp(self.now - late)}
        if len(quotes) == 1 and self.chance(0.7):
            self.say("quote", **quotes[0], **fields)
        else:
            self.say("quote", quotes=quotes, **fields)

    def _prices(self, question: str) -> dict[str, str | float]:
        random, asked = self.random, self.book.questions[question]
        names = ["yes"] if asked.kind == "binary" else [each for each in asked.outcomes if self.chance(0.9)]
        names = names or [asked.outcomes[0]]
        drawn = [random.choice([random.choice(PRICES), text_of(random.randint(1, ONE), ONE)]) for _ in names]
        if self.chance(0.003):
            drawn[:1] = ["1.000001"] if drawn else []
        return {name: float(price) if self.chance(0.5) else price for name, price in zip(names, drawn, strict=True)}

    # --- decisions

    def _staked(self) -> list[str]:
        return [name for name, each in sorted(self.book.contests.items()) if each.trading and not each.finalized]

    def _decide(self) -> None:
        """One participant's decision, mostly at a fresh quote."""
        random = self.random
        going = [name for name in self._staked() if self.chance(0.05) or not self.book.complete(name)]
        names = [(name, each) for name in going for each in sorted(self.book.contests[name].participants)]
        if not names:
            return
        contest, person = random.choice(names)
        at = self.now - random.choice([0] * 12 + [SECOND, HOUR])
        period = self._period(contest, person, at)
        if (contest, person, period) in self.book.taken and not self.chance(0.05):
            return
        if self.chance(0.85):
            self._quotes(fresh=True)
        tried = len(self.book.attempts.get((contest, person, period), []))
        attempt = tried + random.choice([1] * 40 + [2, 0])
        reply = random.choice([self._reply, self._reply, self._reply, self._reply, self._bad_reply])(contest, person)
        prompt = random.choice([None, None, "What do you do?", f"Week {period}: what do you do?", "{}"])
        where = {"contest": contest, "participant": person, "period": period}
        fields = {**where, "attempt": None if attempt == 1 else attempt, "prompt": prompt, **reply}
        if not isinstance(self.say("record_decision", at, **fields), Refusal):
            self.decisions.append(self.attempts[-1][0])

    def _period(self, contest: str, person: str, at: int) -> int:
        taken = {key[2] for key in self.book.taken if key[:2] == (contest, person)}
        free = next(number for number in range(1, 1_000) if number not in taken)
        wrong = self.random.choice([0] * 40 + [1, -1, -50])
        return self.book.period(contest, at, otherwise=free) + wrong

    def _reply(self, contest: str, person: str) -> Told:
        """A reply that can be read, in fields or as text."""
        random, account = self.random, self.book.account(contest, person)
        trading = _trading(self.book.contests[contest])
        cap = account.cash // trading["cap_divisor"]
        action = random.choice(["BET"] * 8 + ["SELL"] * 9 + ["HOLD"])
        live = [each for each in account.open() if self.book.questions[each.question].trades(self.now)]
        if action == "SELL" and not (live if self.chance(0.9) else account.positions):
            action = "BET"
        if action == "BET" and cap < trading["least_bet"]:
            action = "SELL" if account.positions else "HOLD"
        reply: Told = {"action": random.choice([action, action, action.lower(), action.title()])}
        if action == "BET":
            reply["bets"] = self._bets(contest, person, cap, trading)
        if action == "SELL":
            reply["sells"] = self._sells(account.positions, trading)
        reply["reasoning"] = random.choice(["It looks cheap.", "News: “rain” at 4 %", "a\nb"])
        return self._form(reply)

    def _form(self, reply: Told) -> Told:
        """In fields, or as text, with figures such as no writer of JSON makes."""
        if self.chance(0.5):
            return {
                name: [_bare(leg) for leg in value] if isinstance(value, list) else value
                for name, value in reply.items()
            }
        text = json.dumps(reply, ensure_ascii=self.chance(0.5), indent=self.random.choice([None, 2]))
        return {"response": text.replace('"@', "").replace('@"', "")}

    def _bets(self, contest: str, person: str, cap: int, trading: Told) -> list[Told]:
        random, book = self.random, self.book
        there = sorted(book.contests[contest].questions)
        live = [name for name in there if book.questions[name].trades(self.now)]
        held = [(each.question, each.outcome) for each in book.account(contest, person).open()]
        legs, left, taken = [], cap, 0
        for _ in range(random.choice([1, 1, 2] if trading["sum_capped"] else [1, 1, 1, 2, 2, 3])):
            anywhere = [*sorted(book.questions), "nowhere"]
            question = random.choice(live) if live and self.chance(0.93) else random.choice(anywhere)
            asked = book.questions.get(question)
            side = random.choice(asked.outcomes) if asked else "yes"
            if held and self.chance(0.3):
                question, side = random.choice(held)
                asked = book.questions[question]
            if asked and asked.kind == "binary":
                side = random.choice([side, side.upper(), side.title()])
            elif asked and self.later and side in asked.outcomes and Random(f"{self.now} {side}").random() < 0.8:
                side = f"not {side}"
            side = "maybe" if self.chance(0.03) else side
            most = left if self.chance(0.85) else cap
            most = max(cap - taken, 0) if trading["sum_capped"] and self.chance(0.9) else most
            amount = random.choice(
                [most, most // 2, trading["least_bet"], random.randint(0, max(most, 0)), 500 * MONEY]
            )
            amount = min(max(amount, trading["least_bet"]), cap)
            left = max((left * trading["cap_divisor"] - amount) // trading["cap_divisor"], 0)
            taken += amount
            legs.append({"market_id": question, "side": side, "amount": plain(amount)})
        return legs

    def _sells(self, positions: list[Position], trading: Told) -> list[Told]:
        random = self.random
        legs = []
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            held = [each for each in positions if each.status == "open"]
            live = [each for each in held if self.book.questions[each.question].trades(self.now)]
            number: Any = random.choice(live if live and self.chance(0.93) else positions).number
            number = random.choice([number, str(number)]) if self.chance(0.95) else random.choice(["99", "abc", 0])
            part = max(units(random.choice(PARTS), PERCENT), trading["least_percentage"])
            legs.append({"position_id": number, "percentage": plain(part, PERCENT)})
        return legs

    def _bad_reply(self, contest: str, person: str) -> Told:
        """A reply with something wrong in it, perhaps with more than one thing."""
        random, trading = self.random, _trading(self.book.contests[contest])
        if self.chance(0.25):
            return {"response": random.choice(ODD)}
        reply: Told = {"action": "BET", "reasoning": "Because."}
        cap = self.book.account(contest, person).cash // trading["cap_divisor"]
        fine = trading["least_bet"]
        bad: list[Any] = [
            plain(fine - 1),
            0,
            -50,
            plain(cap + 1),
            plain(2 * cap),
            2 * 10**12,
            "@1e999@",
            "NaN",
            "Infinity",
            "much",
            "",
        ]
        wanted = random.choice(
            ["amount", "amount", "percentage", "blank", "none", "mixed", "action", "reasoning", "sum"]
        )
        bets = [{"market_id": "q1", "side": "yes", "amount": plain(fine)} for _ in range(random.randint(1, 3))]
        sells = [{"position_id": "1", "percentage": 50}, {"position_id": "2", "percentage": 100}]
        if wanted == "amount":
            for leg in random.sample(bets, random.randint(1, len(bets))):
                leg["amount"] = random.choice(bad)
        if wanted == "sum":
            bets = [leg | {"amount": plain(max(cap, fine))} for leg in [*bets, *bets]]
        if wanted == "blank":
            random.choice(bets)[random.choice(["market_id", "side"])] = random.choice(["", " "])
        if wanted in {"percentage", "blank"} and self.chance(0.6):
            reply["action"], bets = "SELL", []
            worse = (
                {"position_id": "  "} if wanted == "blank" else {"percentage": random.choice([0, -1, 100.5, "half"])}
            )
            reply["sells"] = [sells[0], sells[1] | worse]
        if wanted == "none":
            reply["action"], bets = random.choice(["BET", "SELL"]), []
        if wanted == "mixed":
            reply["action"] = random.choice(["BET", "SELL", "HOLD"])
            reply["sells"] = sells
        if wanted == "action":
            reply["action"] = random.choice(["BUY", "bet ", "", "HOLD."])
        if wanted == "reasoning" or self.chance(0.05):
            reply["reasoning"] = random.choice(["", " \n"])
        return self._form(reply | ({"bets": bets} if bets else {}))

    def _again(self) -> None:
        """A decision that was sent before: the same line, the same under another id, or another of that number."""
        if not self.decisions:
            return
        command = self.random.choice(self.decisions[-4:])
        how = self.random.choice(["line", "id", "content"])
        if how == "line":
            before = next(outcome for line, outcome in self.attempts if line is command)
            assert not isinstance(before, Refusal)
            self.attempts.append((command, self._first(before)))
            return
        changed = {"reasoning": "On second thoughts."} if "action" in command else {"response": "On second thoughts."}
        self._attempt(command | {"id": f"c{len(self.attempts)}"} | (changed if how == "content" else {}))

    def _first(self, before: Outcome) -> Again:
        """The log positions of the first outcome."""
        if isinstance(before, Again):
            return before
        assert not isinstance(before, Refusal)
        first = next(place for place, event in enumerate(self.book.log, 1) if event is before[0])
        return Again(first, first + len(before) - 1)

    # --- answers and cash

    def _resolve(self, question: str | None = None) -> None:
        random, book = self.random, self.book
        name = question or random.choice(sorted(book.questions))
        outcomes = book.questions[name].outcomes
        cut = random.choice([0, ONE, ONE // 2, ONE // 3, random.randint(0, ONE)])
        drawn = [cut, ONE - cut, *[0] * (len(outcomes) - 2)]
        random.shuffle(drawn)
        if self.chance(0.05):
            drawn[0] = ONE // 7
        payouts = {each: text_of(part, ONE) for each, part in zip(outcomes, drawn, strict=True)}
        at = self.now - random.choice([0, 0, 0, 2 * HOUR])
        if self.chance(0.3):
            self.say("resolve_question", at, question=name, payouts=payouts)
        else:
            self.say("resolve_question", at, question=name, outcome=random.choice(outcomes))

    def _settled(self) -> list[str]:
        """Questions that have an answer, or all if none has."""
        asked = sorted(self.book.questions.items())
        return [name for name, each in asked if each.payouts or each.annulled] or [name for name, _ in asked]

    def _revoke(self) -> None:
        """A resolution taken back, and often another in its place."""
        name = self.random.choice(self._settled())
        self.say("revoke_resolution", question=name, reason="misread")
        if self.chance(0.5):
            self._resolve(name)

    def _cancel(self) -> None:
        random = self.random
        name = random.choice(self._settled() if self.chance(0.3) else sorted(self.book.questions))
        policy = random.choice([None, "refund_cost", "void_trades", "void_trades"])
        if self.later and policy == "refund_cost":
            policy = "refund_stake"
        if self.chance(0.2):
            self.say("annul_question", question=name, reason="no source")
        else:
            self.say("cancel_market", question=name, policy=policy, reason="no source")

    def _move_cash(self) -> None:
        random, staked = self.random, self._staked()
        free = [name for name in staked if _trading(self.book.contests[name])["recapitalisation"]]
        contest = random.choice((free if free and self.chance(0.9) else staked) or ["k0"])
        person = random.choice(PEOPLE)
        amount = random.choice([100, "0.000001", "1234.567891", 0, "20000"])
        kind = random.choice(["deposit_cash", "withdraw_cash"])
        self.say(kind, contest=contest, participant=person, amount=amount, reason="test of cash")

    def _nonsense(self) -> None:
        """Commands about what is not there."""
        hold: Told = {"action": "HOLD", "reasoning": "Nothing to do."}
        where = self.random.choice(
            [{"contest": "nowhere", "participant": "ada"}, {"contest": "k0", "participant": "zoe"}]
        )
        plain_contests = [name for name, each in sorted(self.book.contests.items()) if each.trading is None]
        self.say("record_decision", None, **where, period=1, **hold)
        self.say("deposit_cash", None, **where, amount=1, reason="lost")
        self.say("quote", question="nowhere", prices={"yes": 0.5}, source="x", quoted_at=stamp(self.now))
        self.say("revoke_resolution", question="nowhere", reason="lost")
        for name in plain_contests[:1]:
            self.say("record_decision", contest=name, participant="ada", period=1, **hold)


def _trading(contest: Contest) -> Told:
    assert contest.trading is not None
    return contest.trading


def _bare(leg: Told) -> Told:
    """A leg whose figures are decimal text where JSON has no such number."""
    return {name: value.strip("@") if isinstance(value, str) else value for name, value in leg.items()}
