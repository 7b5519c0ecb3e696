"""The trading book as its rules are worded, one rule a line, for reading and not for speed: what a command leads to.

Sources: Forecaster Arena, Methodology v1, sections 3, 5, 8 to 10, 13; Forecaster Arena, Scoring Methodology, sections
1.2, 2.1, 2.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from tests.support.trading_parts import (
    DAY,
    DEFAULTS,
    LARGEST_HOLDING,
    MONEY,
    MOVEMENTS,
    ONE,
    PERCENT,
    SECOND,
    Account,
    Again,
    Attempt,
    Contest,
    Event,
    Key,
    Number,
    Outcome,
    Position,
    Question,
    Refusal,
    canonical,
    defaulted,
    digest,
    fee_of,
    half_even,
    micros,
    midnight,
    read_reply,
    sunday,
    units,
    unwritten,
    written,
)

TRADES = {"shares_bought.v1", "shares_sold.v1"}


class Book:
    """A model of the trading book: commands lead to events. An event's log position is its place in `log`, from 1."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.questions: dict[str, Question] = {}
        self.contests: dict[str, Contest] = {}
        self.attempts: dict[Key, list[Attempt]] = {}
        self.taken: set[Key] = set()
        self._movements: dict[tuple[str, str], list[tuple[int, int, Event]]] = {}  # of the log, by account
        self._quotes: dict[str, list[tuple[int, Event, Event]]] = {}  # of the log, by question

    # --- what is there, as of a log position or an instant

    def account(self, contest: str, participant: str, after: int | None = None, at: int | None = None) -> Account:
        """An account right after a log position, or with all that counts from that instant or before."""
        account = Account()
        for _, counts_from, event in self.movements(contest, participant, after):
            if at is None or counts_from <= at:
                account.moved(event)
        return account

    def movements(self, contest: str, participant: str, after: int | None = None) -> Iterator[tuple[int, int, Event]]:
        """Log position, the instant a movement counts from, and the movement.

        None counts from before the movement that precedes it in the log, nor a trade from before its price was known.
        """
        for each in self._movements.get((contest, participant), [])[:]:
            if after is None or each[0] <= after:
                yield each

    def known_from(self, question: str, number: int) -> int:
        """Since when the quote of a log position is known: no earlier than the question's quotes before it."""
        return max(int(event["at"]) for position, event, _ in self._quotes[question] if position <= number)

    def quotes(self, question: str, after: int | None = None) -> list[tuple[int, Event, Event]]:
        """The question's quotes, up to a log position: log position, event, its own part."""
        return [each for each in self._quotes.get(question, []) if after is None or each[0] <= after]

    def quote(self, question: str) -> tuple[int, Event, Event] | None:
        """The question's last quote."""
        return next(reversed(self._quotes.get(question, [])), None)

    def complete(self, contest: str) -> bool:
        """Somebody plays, everybody's first decision is taken, and nothing is open."""
        enrolled = self.contests[contest].participants
        decided = {participant for name, participant, _ in self.taken if name == contest} >= set(enrolled)
        return bool(enrolled) and decided and not any(self.account(contest, each).open() for each in enrolled)

    def running(self) -> list[tuple[str, str]]:
        """Contest and participant of each account whose contest is not finalized, in order."""
        return [
            (name, participant)
            for name, contest in sorted(self.contests.items())
            if contest.trading is not None and not contest.finalized
            for participant in sorted(contest.participants)
        ]

    # --- questions and contests

    def open_question(
        self, at: int, question: str, kind: str, *, opens: int, closes: int, outcomes: Any = ()
    ) -> Outcome:
        """A market."""
        if question in self.questions:
            return Refusal("duplicate_question")
        outcomes = ("yes", "no") if kind == "binary" else tuple(outcomes)
        self.questions[question] = Question(kind, outcomes, opens, closes)
        return self._recorded(_event("question_opened", at, question=question))

    def close(self, at: int, question: str) -> Outcome:
        """An early close."""
        if question not in self.questions:
            return Refusal("unknown_question")
        asked = self.questions[question]
        if asked.payouts or asked.annulled:
            return Refusal("question_resolved")
        if at >= asked.closes:
            return Refusal("question_closed")
        if at <= asked.opens:
            return Refusal("before_opening")
        trades = [each["at"] for each in self.log if each["type"] in TRADES and each["question"] == question]
        if any(at <= traded_at for traded_at in trades):
            return Refusal("out_of_order")
        asked.closes = at
        return self._recorded(_event("question_closed", at, question=question))

    def open_contest(
        self,
        at: int,
        contest: str,
        trading: dict[str, Any] | None,
        *,
        starts_at: int | None = None,
        series: str = "",
        pool: Number = 0,
    ) -> Outcome:
        """A contest; where cohorts are weekly it starts on a Sunday, one a week and series."""
        start = at if starts_at is None else starts_at
        rules = None if trading is None else DEFAULTS | trading
        if contest in self.contests:
            return Refusal("duplicate_contest")
        if rules is not None and rules["cohorts"] == "weekly":
            start = sunday(start)
            if any((each.series, each.start) == (series, start) for each in self._cohorts()):
                return Refusal("duplicate_cohort")
        began = {} if rules is None else {"starts_at": start, "series": series}
        self.contests[contest] = Contest(rules, start, series, units(pool, MONEY))
        return self._recorded(_event("contest_opened", at, contest=contest, pool=units(pool, MONEY), **began))

    def add_question(self, at: int, contest: str, question: str) -> Outcome:
        """A market that the contest's participants can trade."""
        if contest not in self.contests:
            return Refusal("unknown_contest")
        if question not in self.questions:
            return Refusal("unknown_question")
        if self.contests[contest].finalized:
            return Refusal("contest_finalized")
        if question in self.contests[contest].questions:
            return Refusal("question_in_contest")
        self.contests[contest].questions.add(question)
        return self._recorded(_event("question_added", at, contest=contest, question=question))

    def enrol(self, at: int, contest: str, participant: str, family: str = "", release: str = "") -> Outcome:
        """Enrol a participant once; in a contest with stakes, with starting cash."""
        if contest not in self.contests:
            return Refusal("unknown_contest")
        joined = self.contests[contest]
        if joined.finalized:
            return Refusal("contest_finalized")
        if joined.trading is not None and participant in joined.participants:
            return Refusal("enrolled_already")
        if joined.trading is not None and self.complete(contest):
            return Refusal("contest_complete")
        joined.participants[participant] = family, release
        who = {"contest": contest, "participant": participant}
        events = [_event("participant_enrolled", at, **who, family=family, release=release)]
        if joined.trading is not None:
            granted = joined.trading["starting_cash"]
            events.append(_event("cash_granted", at, **who, amount=granted))
        return self._recorded(*events)

    def finalize(self, at: int, contest: str) -> Outcome:
        """The end, where nothing is left to happen."""
        if contest not in self.contests:
            return Refusal("unknown_contest")
        if self.contests[contest].finalized:
            return Refusal("contest_finalized")
        if self.contests[contest].trading is not None and not self.complete(contest):
            return Refusal("contest_not_complete")
        self.contests[contest].finalized = True
        return self._recorded(_event("contest_finalized", at, contest=contest))

    def quoted(
        self, at: int, quotes: Sequence[tuple[str, Mapping[str, Mapping[str, Number]]]], source: str, on: int
    ) -> Outcome:
        """Prices, bids and asks of one or more markets at one instant; of a binary one those of yes.

        Who buys no at its ask sells yes at its bid, and the other way round.
        """
        for code in self._why_no_quote(quotes):
            return Refusal(code)
        rows: list[Event] = [self._row(question, sides) for question, sides in quotes]
        for row in rows:
            both = zip(row.get("bids", []), row.get("asks", []), strict=False)
            if any(low is not None and high is not None and low > high for low, high in both):
                return Refusal("crossed_quote")
        if on > at:
            return Refusal("wrong_order_of_instants")
        if any(last is not None and on < last[1]["quoted_at"] for last in map(self.quote, (q for q, _ in quotes))):
            return Refusal("out_of_order")
        return self._recorded(_event("prices_quoted", at, source=source, quoted_at=on, quotes=rows))

    def _why_no_quote(self, quotes: Sequence[tuple[str, Mapping[str, Mapping[str, Number]]]]) -> Iterator[str]:
        most = {"bid_sizes": 10**12, "ask_sizes": 10**12}
        for _, sides in quotes:
            for side, numbers in sides.items():
                if not all(0 <= Fraction(str(number)) <= most.get(side, 1) for number in numbers.values()):
                    yield "out_of_range"
        for question, sides in quotes:
            if question not in self.questions:
                yield "unknown_question"
            if not {name for prices in sides.values() for name in prices} <= set(self.questions[question].outcomes):
                yield "unknown_outcome"

    def _row(self, question: str, sides: Mapping[str, Mapping[str, Number]]) -> Event:
        asked = self.questions[question]
        price, bid, ask = (
            [units(prices[name], ONE) if name in prices else None for name in asked.outcomes]
            for prices in (sides.get("prices", {}), sides.get("bids", {}), sides.get("asks", {}))
        )
        for number, (low, high) in enumerate(zip(bid, ask, strict=True)):
            if price[number] is None and low is not None and high is not None:
                price[number] = half_even(Fraction(low + high, 2))
        if asked.kind == "binary":
            price[1], bid[1], ask[1] = (None if row[0] is None else ONE - row[0] for row in (price, ask, bid))
        sizes: list[list[int | None]] = [
            [units(row[name], MONEY) if name in row else None for name in asked.outcomes]
            for row in (sides.get("bid_sizes", {}), sides.get("ask_sizes", {}))
        ]
        if asked.kind == "binary":
            sizes[0][1], sizes[1][1] = sizes[1][0], sizes[0][0]
        booked = {"bids": bid, "asks": ask, "bid_sizes": sizes[0], "ask_sizes": sizes[1]}
        given = {name: each for name, each in booked.items() if any(p is not None for p in each)}
        return {"question": question, "prices": price} | given

    def deposit(self, at: int, contest: str, participant: str, amount: Number, reason: str) -> Outcome:
        """Cash from outside, where the rules allow it."""
        for code in self._why_no_payment(contest, participant, amount):
            return Refusal(code)
        fields = {"contest": contest, "participant": participant, "amount": units(amount, MONEY), "reason": reason}
        return self._recorded(_event("cash_deposited", at, **fields))

    def withdraw(self, at: int, contest: str, participant: str, amount: Number, reason: str) -> Outcome:
        """Cash to the outside, where the rules allow it, and never below zero."""
        for code in self._why_no_payment(contest, participant, amount):
            return Refusal(code)
        if units(amount, MONEY) > self.account(contest, participant).cash:
            return Refusal("not_enough_cash")
        fields = {"contest": contest, "participant": participant, "amount": units(amount, MONEY), "reason": reason}
        return self._recorded(_event("cash_withdrawn", at, **fields))

    def _why_no_payment(self, contest: str, participant: str, amount: Number) -> Iterator[str]:
        if units(amount, MONEY) <= 0:
            yield "out_of_range"
        if contest not in self.contests:
            yield "unknown_contest"
        if self.contests[contest].finalized:
            yield "contest_finalized"
        if self.contests[contest].trading is None:
            yield "not_trading"
        if participant not in self.contests[contest].participants:
            yield "not_enrolled"
        if not self._rules(contest)["recapitalisation"]:
            yield "no_recapitalisation"

    # --- decisions

    def record_decision(
        self,
        at: int,
        contest: str,
        participant: str,
        period: int,
        attempt: int = 1,
        *,
        prompt: str = "",
        response: str = "",
        **reply: Any,
    ) -> Outcome:
        """A decision in the fields of a reply, or as the text of one."""
        key = contest, participant, period
        content = canonical({"at": at, "attempt": attempt, "prompt": prompt, "response": response, "reply": reply})
        if wrong := unwritten(reply):
            return Refusal(wrong)
        for earlier in self.attempts.get(key, [])[max(attempt - 1, 0) : max(attempt, 0)]:
            return Again(earlier.first, earlier.last) if earlier.content == content else Refusal("decision_taken")
        for code in self._why_not_now(at, contest, participant, period, attempt):
            return Refusal(code)
        given = {name: value for name, value in reply.items() if value is not None}
        inline = "action" in given
        meant = defaulted(given) if inline else read_reply(response)
        wrong = "unreadable" if meant is None else next(self._faults(contest, participant, meant), "")
        if wrong and inline and not response:
            response = canonical(reply)
        first, keys = len(self.log) + 1, {"contest": contest, "participant": participant, "period": period}
        self._keep(at, prompt, response)
        texts = {"prompt": digest(prompt), "response": digest(response)}
        if wrong or meant is None:
            self._recorded(_event("decision_malformed", at, **keys, attempt=attempt, fault=wrong, **texts, call=None))
            failed = 1 + sum(each.malformed for each in self.attempts.get(key, []))
            if failed >= self._rules(contest)["attempts"]:
                self._recorded(_event("decision_defaulted", at, **keys))
                self.taken.add(key)
        else:
            self._carry_out(at, keys | {"attempt": attempt}, meant, texts)
        self.attempts.setdefault(key, []).append(Attempt(content, first, len(self.log), bool(wrong)))
        return self.log[first - 1 :]

    def _why_not_now(self, at: int, contest: str, participant: str, period: int, attempt: int) -> Iterator[str]:
        """Why a decision cannot be taken, each reason."""
        if contest not in self.contests:
            yield "unknown_contest"
        joined, tried = self.contests[contest], self.attempts.get((contest, participant, period), [])
        if joined.finalized:
            yield "contest_finalized"
        if joined.trading is None:
            yield "not_trading"
        if participant not in joined.participants:
            yield "not_enrolled"
        if self.complete(contest):
            yield "contest_complete"
        if period < 1 or at < joined.start or period != self.period(contest, at, period):
            yield "wrong_period"
        newer = [each for each in self._cohorts() if each.series == joined.series and each.start > joined.start]
        if 0 < self._rules(contest)["deciding_cohorts"] <= len(newer):
            yield "cohort_not_deciding"
        if (contest, participant, period) in self.taken:
            yield "decision_taken"
        if attempt != len(tried) + 1:
            yield "wrong_attempt"
        decided = ("decision_recorded.v1", "decision_malformed.v1")
        latest = [each["at"] for each in self.log if each["type"] in decided and _of(each) == (contest, participant)]
        if latest and at < latest[-1]:
            yield "out_of_order"

    def period(self, contest: str, at: int, otherwise: int = 1) -> int:
        """The period of a contest that an instant is in, by UTC days; `otherwise` where a period is just a number."""
        joined, days = self.contests[contest], self._rules(contest)["period_days"]
        if not days:
            return otherwise
        passed: int = (midnight(at) - midnight(joined.start)) // (days * DAY)
        return passed + 1

    def _faults(self, contest: str, participant: str, reply: dict[str, Any]) -> Iterator[str]:
        """The faults that make a whole reply malformed."""
        rules = self._rules(contest)
        action, bets, sells = reply["action"].upper(), reply["bets"], reply["sells"]
        if action not in {"BET", "SELL", "HOLD"}:
            yield "unknown_action"
        if not reply["reasoning"].strip():
            yield "no_reasoning"
        if (action == "BET" and not bets) or (action == "SELL" and not sells):
            yield "no_legs"
        if (action != "BET" and bets) or (action != "SELL" and sells):
            yield "mixed_legs"
        if any(not str(leg[name]).strip() for leg in bets for name in ("market_id", "side")):
            yield "blank_leg"
        if any(not str(leg["position_id"]).strip() for leg in sells):
            yield "blank_leg"
        amounts = [written(leg["amount"]) for leg in bets]
        if any(amount is None or abs(amount) > 10**12 for amount in amounts):
            yield "bad_amount"
        stakes = [micros(leg["amount"], MONEY) for leg in bets]
        cap = self.account(contest, participant).cash // rules["cap_divisor"]
        if any(stake < rules["least_bet"] for stake in stakes):
            yield "below_least_bet"
        if any(stake > cap for stake in stakes):
            yield "above_cap"
        if rules["sum_capped"] and sum(stakes) > cap and stakes:
            yield "above_sum_cap"
        parts = [written(leg["percentage"]) for leg in sells]
        lowest = rules["least_percentage"]
        if any(part is None or not lowest <= half_even(part * PERCENT) <= 100 * PERCENT for part in parts):
            yield "bad_percentage"

    def _carry_out(self, at: int, keys: dict[str, Any], reply: dict[str, Any], texts: dict[str, str]) -> None:
        """The decision, then its legs, each as the legs before it left cash and positions."""
        bets = [
            {"question": leg["market_id"], "side": leg["side"], "amount": micros(leg["amount"], MONEY)}
            for leg in reply["bets"]
        ]
        sells = [
            {"position": str(leg["position_id"]), "percentage": micros(leg["percentage"], PERCENT)}
            for leg in reply["sells"]
        ]
        account = self.account(keys["contest"], keys["participant"])
        legs: list[Event | str] = []
        for number, leg in enumerate([*bets, *sells], 1):
            judged = self._bet(at, keys, leg, account) if "side" in leg else self._sale(at, keys, leg, account)
            if not isinstance(judged, str):
                judged["leg"] = number
                account.moved(judged)
            legs.append(judged)
        if bets and self._rules(keys["contest"])["legs"] == "all_or_nothing" and any(isinstance(e, str) for e in legs):
            legs = [each if isinstance(each, str) else "sibling_refused" for each in legs]
        done = sum(not isinstance(each, str) for each in legs)
        action = reply["action"].upper()
        fields = {"action": action, "bets": bets, "sells": sells, "executed": done, "reasoning": reply["reasoning"]}
        self._recorded(_event("decision_recorded", at, **keys, **fields, **texts, call=None))
        for number, each in enumerate(legs, 1):
            refused = _event("leg_refused", at, **keys, leg=number, code=each)
            self._recorded(refused if isinstance(each, str) else each)
        if action == "HOLD" or done:
            self.taken.add((keys["contest"], keys["participant"], keys["period"]))

    def _bet(self, at: int, keys: dict[str, Any], leg: dict[str, Any], account: Account) -> Event | str:
        """The purchase, or why there is none, the first reason that applies."""
        question, cap = leg["question"], account.cash // self._rules(keys["contest"])["cap_divisor"]
        if question not in self.contests[keys["contest"]].questions:
            return "unknown_market"
        outcome = self.questions[question].side(leg["side"], against=self._rules(keys["contest"])["shares_against"])
        if outcome is None:
            return "unknown_side"
        priced = self._price(at, keys["contest"], question, outcome, "ask")
        if isinstance(priced, str):
            return priced
        price, quote = priced
        shares = leg["amount"] * ONE // price if price else 0
        wanted, amount = shares, leg["amount"]
        shares, deep = self._deep(question, outcome, shares, account, self._rules(keys["contest"])["depth"])
        if shares < wanted:
            amount = ceil(Fraction(shares * price, ONE))
        fee = fee_of(self._rules(keys["contest"]), shares, price, -amount)
        wrong = {
            "no_price": not price,
            "above_cap": leg["amount"] > cap,
            "no_shares": not wanted,
            "not_enough_depth": not deep,
            "not_enough_cash": amount + fee > account.cash,
            "too_many_shares": account.shares_bought + shares > LARGEST_HOLDING,
        }
        if code := next((code for code, applies in wrong.items() if applies), None):
            return code
        held = account.held(question, outcome)
        number = held.number if held else len(account.positions) + 1
        confidence = half_even(Fraction(leg["amount"] * ONE, cap))
        fields = {"question": question, "outcome": outcome, "position": number, "price": price, "quote": quote}
        paid = {"cash": account.cash, "amount": amount, "shares": shares, "confidence": confidence, "fee": fee}
        paid["requested"] = leg["amount"] if shares < wanted else 0
        return _event("shares_bought", at, **keys, **fields, **paid)

    def _sale(self, at: int, keys: dict[str, Any], leg: dict[str, Any], account: Account) -> Event | str:
        """The sale, or why there is none, the first reason that applies."""
        position = next((each for each in account.open() if str(each.number) == leg["position"]), None)
        if position is None:
            return "no_position"
        priced = self._price(at, keys["contest"], position.question, position.outcome, "bid")
        if isinstance(priced, str):
            return priced
        price, quote = priced
        everything = leg["percentage"] == 100 * PERCENT
        sold = position.shares if everything else position.shares * leg["percentage"] // (100 * PERCENT)
        if not sold:
            return "no_shares"
        wanted, everything = sold, False
        depth = self._rules(keys["contest"])["depth"]
        sold, deep = self._deep(position.question, position.outcome, -sold, account, depth)
        if not deep:
            return "not_enough_depth"
        cost = position.cost if everything else position.cost * sold // position.shares
        fields = {"question": position.question, "outcome": position.outcome, "position": position.number}
        proceeds = sold * price // ONE
        fee = fee_of(self._rules(keys["contest"]), sold, price, proceeds)
        if fee > proceeds and account.cash + proceeds - fee < 0:
            return "not_enough_cash"
        got = {"price": price, "quote": quote, "shares": sold, "cost": cost, "proceeds": proceeds, "fee": fee}
        got["requested"] = wanted if sold < wanted else 0
        return _event("shares_sold", at, **keys, **fields, **got)

    def _price(self, at: int, contest: str, question: str, outcome: str, side: str) -> tuple[int, int] | str:
        """The price of the last quote and that quote's log position, or why there is none to trade at.

        side: of the quote at which the rules may have it traded: bid or ask. A share against an outcome is worth the
        rest of 1: who buys one gives 1 less what is bid for the outcome, who sells one gets 1 less what is asked.
        """
        asked, quote, rules = self.questions[question], self.quote(question), self._rules(contest)
        if not asked.trades(at):
            return "market_closed"
        place, against = asked.place(outcome)
        if quote is None or (rules["fills"] == "price" and quote[2]["prices"][place] is None):
            return "no_quote"
        if quote[1]["quoted_at"] > at:
            return "quote_too_new"
        if at - quote[1]["quoted_at"] > rules["stale_after_seconds"] * SECOND:
            return "stale_quote"
        met = {"bid": "asks", "ask": "bids"}[side] if against else f"{side}s"
        of_side = quote[2].get(met, [None] * len(asked.outcomes))
        price = quote[2]["prices"][place] if rules["fills"] == "price" else of_side[place]
        return f"no_{side}" if price is None else (ONE - price if against else price, quote[0])

    def _deep(self, question: str, outcome: str, shares: int, account: Account, rule: str) -> tuple[int, bool]:
        """How many shares the account can still buy, or sell if below 0, at the last quote, and whether that is enough.

        Shares of no are bought from those who bid for yes, and sold to those who ask for yes; likewise those against an
        outcome.
        """
        asked, quote = self.questions[question], self.quote(question)
        assert quote is not None
        place, against = asked.place(outcome)
        sides = ["ask_sizes", "bid_sizes"] if (shares > 0) != against else ["bid_sizes", "ask_sizes"]
        limit = quote[2].get(sides[0], [None] * len(asked.outcomes))[place]
        if rule == "unlimited" or limit is None:
            return abs(shares), True
        kinds = {"ask_sizes": "shares_bought.v1", "bid_sizes": "shares_sold.v1"}
        other = f"not {asked.outcomes[place]}" if asked.kind != "binary" else asked.outcomes[1 - place]
        same = {(kinds[sides[0]], asked.outcomes[place]), (kinds[sides[1]], other)}
        at_it = [event for event in account.trades if (event["question"], event["quote"]) == (question, quote[0])]
        left = limit - sum(event["shares"] for event in at_it if (event["type"], event["outcome"]) in same)
        return min(abs(shares), max(left, 0)), left >= abs(shares) if rule == "refuse" else left > 0

    def _keep(self, at: int, *texts: str) -> None:
        """Each text that is not kept yet."""
        for text in texts:
            kept = {event["digest"] for event in self.log if event["type"] == "text_kept.v1"}
            if text and digest(text) not in kept:
                self._recorded(_event("text_kept", at, digest=digest(text), text=text))

    # --- settlement

    def resolve(
        self, at: int, question: str, outcome: str | None = None, payouts: Mapping[str, Number] | None = None
    ) -> Outcome:
        """An outcome, or what a share of each pays; then every open position, in order."""
        for code in self._why_unresolved(at, question, outcome, payouts):
            return Refusal(code)
        first = len(self.log) + 1
        self._pay_out(at, question, _vector(self.questions[question], outcome, payouts))
        return self.log[first - 1 :]

    def _pay_out(self, at: int, question: str, vector: tuple[int, ...]) -> None:
        """A resolution, and what it pays for each open position."""
        asked = self.questions[question]
        asked.payouts = vector
        self._recorded(_event("question_resolved", at, question=question, **_answer(asked, vector)))
        for keys, position in self._positions(question):
            if position.status == "open":
                place, against = asked.place(position.outcome)
                payout = ONE - vector[place] if against else vector[place]
                got = {"payout_unit": 0, "payout": payout, "proceeds": position.shares * payout // ONE}
                held = {"shares": position.shares, "cost": position.cost}
                self._recorded(_event("position_settled", at, **keys, **held, **got))

    def _why_unresolved(
        self, at: int, question: str, outcome: str | None, payouts: Mapping[str, Number] | None
    ) -> Iterator[str]:
        if payouts is not None and not all(0 <= Fraction(str(payout)) <= 1 for payout in payouts.values()):
            yield "out_of_range"
        if question not in self.questions:
            yield "unknown_question"
        asked = self.questions[question]
        if (outcome is None) == (payouts is None):
            yield "wrong_resolution"
        if not set([outcome] if payouts is None else payouts) <= set(asked.outcomes):
            yield "unknown_outcome"
        if payouts is not None and set(payouts) != set(asked.outcomes):
            yield "wrong_length"
        if sum(_vector(asked, outcome, payouts)) != ONE:
            yield "not_summing_to_one"
        if asked.payouts or asked.annulled:
            yield "question_resolved"
        if at < asked.opens:
            yield "before_opening"

    def cancel(self, at: int, question: str, policy: str, reason: str) -> Outcome:
        """The question counts nowhere: costs of what is left go back, or stakes, or every trade is undone."""
        if question not in self.questions:
            return Refusal("unknown_question")
        asked = self.questions[question]
        if asked.annulled:
            return Refusal("question_resolved")
        first = len(self.log) + 1
        self._recorded(_event("question_annulled", at, question=question, policy=policy, reason=reason))
        self._reverse(at, question)
        asked.payouts, asked.annulled, asked.stood = (), policy, asked.payouts
        for keys, position in self._positions(question):
            held = {"shares": position.shares, "cost": position.cost}
            if policy == "void_trades":
                amount = position.paid - position.received + position.fees
                self._recorded(_event("trades_voided", at, **keys, **held, amount=amount, fee=position.fees))
            elif policy == "refund_stake":
                amount = max(position.paid - position.received, 0)
                self._recorded(_event("trades_voided", at, **keys, **held, amount=amount, fee=0))
            elif position.status == "open":
                self._recorded(_event("position_refunded", at, **keys, **held))
        return self.log[first - 1 :]

    def revoke(self, at: int, question: str, reason: str) -> Outcome:
        """A resolution or annulment undone, with what it settled; the resolution before an annulment stands again."""
        if question not in self.questions:
            return Refusal("unknown_question")
        asked = self.questions[question]
        if not asked.payouts and not asked.annulled:
            return Refusal("not_resolved")
        first = len(self.log) + 1
        self._recorded(_event("resolution_revoked", at, question=question, reason=reason))
        self._reverse(at, question)
        stood = asked.stood if asked.annulled else ()
        asked.payouts, asked.annulled, asked.stood = (), "", ()
        if stood:
            self._pay_out(at, question, stood)
        return self.log[first - 1 :]

    def _reverse(self, at: int, question: str) -> None:
        """Take back from cash what the question's settlements, refunds and voidings paid."""
        for keys, position in list(self._positions(question)):
            if position.status in {"settled", "refunded", "voided"}:
                number, settlement = next(
                    (number, event)
                    for number, _, event in reversed([*self.movements(keys["contest"], keys["participant"])])
                    if event.get("position") == position.number
                )
                amount = _credited(settlement)
                self._recorded(_event("settlement_reversed", at, **keys, reverses=number, amount=amount))

    def _positions(self, question: str) -> Iterator[tuple[dict[str, Any], Position]]:
        """Every position ever opened on a question, in order of contest, participant, position; whose and which."""
        for contest, participant in self.running():
            for position in self.account(contest, participant).positions:
                if position.question == question:
                    keys = {"contest": contest, "participant": participant, "question": question}
                    yield keys | {"outcome": position.outcome, "position": position.number}, position

    # --- helpers

    def _rules(self, contest: str) -> dict[str, Any]:
        rules = self.contests[contest].trading
        assert rules is not None
        return rules

    def _cohorts(self) -> list[Contest]:
        """The weekly cohorts."""
        return [each for each in self.contests.values() if each.trading and each.trading["cohorts"] == "weekly"]

    def _recorded(self, *events: Event) -> list[Event]:
        for event in events:
            self.log.append(event)
            number = len(self.log)
            for each in event.get("quotes", []):
                self._quotes.setdefault(each["question"], []).append((number, event, each))
            if event["type"] in MOVEMENTS:
                movements = self._movements.setdefault(_of(event), [])
                movements.append(
                    (number, max([self._counts_from(event), *(each[1] for each in movements[-1:])]), event)
                )
        return list(events)

    def _counts_from(self, event: Event) -> int:
        """The instant from which a movement counts, by itself."""
        at = int(event["at"])
        return max(at, self.known_from(event["question"], event["quote"])) if event["type"] in TRADES else at


def _event(kind: str, at: int, **fields: Any) -> Event:
    return {"type": f"{kind}.v1", "at": at, **fields}


def _vector(asked: Question, outcome: str | None, payouts: Mapping[str, Number] | None) -> tuple[int, ...]:
    """The payout of a share of each outcome, in 1e-9."""
    named: Mapping[str, Number] = {str(outcome): 1} if payouts is None else payouts
    return tuple(units(named.get(each, 0), ONE) for each in asked.outcomes)


def _answer(asked: Question, vector: tuple[int, ...]) -> dict[str, Any]:
    """The outcome that came true, or, where none did alone, the payouts."""
    if ONE in vector:
        return {"outcome": asked.outcomes[vector.index(ONE)], "payouts": ()}
    return {"outcome": None, "payouts": vector}


def _of(event: Event) -> tuple[str, str]:
    return event["contest"], event["participant"]


def _credited(settlement: Event) -> int:
    """The amount that a settlement, refund or voiding added to cash."""
    name = {"position_settled.v1": "proceeds", "position_refunded.v1": "cost", "trades_voided.v1": "amount"}
    amount: int = settlement[name[settlement["type"]]]
    return amount
