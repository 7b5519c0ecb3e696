"""Real markets: 6,153 orders of 255 traders on whether 82 published findings replicate, and the prices of 21 more.

Expected numbers are known from the source's own files, or worked out here from its lines with exact decimals.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from fractions import Fraction
from pathlib import Path
from statistics import correlation
from typing import Any, NamedTuple

import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.replay import Replay, replay
from tests import kept_digests
from tests.support import replication
from tests.support.effort import LONG
from tests.support.forging import audited
from tests.support.replication import DUST, Row

pytestmark = pytest.mark.skipif(
    not replication.SOURCE.is_file(), reason=f"needs {replication.SOURCE.name}, which is not here"
)

ORDERS = {"RPP": 2_288, "ML2": 1_785, "EERP": 2_080}
TWICE = {"EERP": 64 + 3}  # orders that first sell, then buy; three are called `close`, but of more than was held
LET_GO = {"ML2": 64, "EERP": 25}  # orders that close all there is, though they speak of up to DUST more
DAYS = {"RPP": 727, "ML2": 17, "EERP": 13}  # midnights, from the one before the first order to the one after the last
MAKER = {  # what the market maker lost, in points; on the market that cost it most
    "RPP": (Decimal("130.6466"), Decimal("55.14")),
    "ML2": (Decimal("4431.3943"), Decimal("612.89")),
    "EERP": (Decimal("3.7353"), Decimal("62.81")),
}
# Points or shares of one order: of at most 600 shares, at prices of at least 0.05, the nine decimals of a price miss
# 6e-6, the eight of a part of a holding 3e-6, and rounding down to 1e-6, purchase after purchase, the rest.
ROUNDING = Decimal("0.00002")
ARTICLE = {"share": "73%", "prices": "0.581", "survey": "0.564"}
DECIDED = 14_000  # rows of the log, among which every type of event is
PUBLISHED = Fraction(1, 10**9)  # of a mean of published scores
OTHER_COST = {"EERP-40716"}  # called `close`, of somebody who holds nothing: carried out as a purchase


@pytest.fixture(autouse=True, scope="module")
def exact(outcomes: Any) -> Iterator[None]:
    """Decimals, in a tenth of the time of Fractions: what is not exact is an error, and a text that is no number."""
    with localcontext(Context(prec=60, traps=[Inexact, InvalidOperation])):
        yield


# --- what follows from the source


class Market(NamedTuple):
    """The source by kind, and each question's project and answer."""

    orders: dict[str, Row]  # those with a cost, by id
    project: dict[str, str]
    answer: dict[str, str]

    def lost(self, order: Row) -> Decimal:
        """The maker's loss from an order, once the finding is settled."""
        won = Decimal(order["yes_shares_delta"]) if self.answer[order["qid"]] == "yes" else Decimal(0)
        return won - Decimal(order["lmsr_yes_cost"])

    def of(self, project: str) -> dict[str, Row]:
        """A project's orders, in order of time."""
        return {tid: order for tid, order in self.orders.items() if self.project[order["qid"]] == project}

    def worth(self, project: str, instants: list[str]) -> list[Decimal]:
        """The gain of all traders together at each instant if shares are worth the last price; at the last of the
        instants, if they are worth their payout.
        """
        shares, price, paid = defaultdict[str, Decimal](Decimal), dict[str, Decimal](), Decimal(0)
        worth, orders, place = list[Decimal](), list(self.of(project).values()), 0
        for instant in instants:
            begin = place
            while place < len(orders) and orders[place]["at"] <= instant:
                order, place = orders[place], place + 1
                shares[order["qid"]] += Decimal(order["yes_shares_delta"])
                price[order["qid"]], paid = Decimal(order["price_after"]), paid + Decimal(order["lmsr_yes_cost"])
            if instant == instants[-1]:
                price = {qid: Decimal(self.answer[qid] == "yes") for qid in shares}
            is_new = place > begin or instant in {instants[0], instants[-1]}
            worth.append(sum((held * price[qid] for qid, held in shares.items()), -paid) if is_new else worth[-1])
        return worth


@pytest.fixture(scope="module")
def source() -> Market:
    """The file."""
    rows = replication.rows()
    return Market(
        orders={row["tid"]: row for row in rows if "action" in row},
        project={row["qid"]: row["project"] for row in rows if row["kind"] == "question"},
        answer={row["qid"]: row["outcome"] for row in rows if row["kind"] == "resolution"},
    )


# --- the markets in the engine


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the log."""
    return tmp_path_factory.mktemp("replication") / "markets.db"


@pytest.fixture(scope="module")
def ledger(path: Path) -> Iterator[Ledger]:
    """An empty one."""
    with Ledger.open(path, clock=lambda: 0) as opened:
        yield opened


@pytest.fixture(scope="module")
def outcomes(ledger: Ledger) -> list[tuple[dict[str, Any], Any]]:
    """Each command, and what became of it."""
    asked = list(replication.commands(replication.rows()))
    return list(zip(asked, ledger.handle_many(read(json.dumps(command)) for command in asked), strict=True))


@pytest.fixture(scope="module")
def replayed(path: Path, outcomes: Any) -> Replay:
    """The log, replayed."""
    return replay(str(path))


@pytest.fixture(scope="module")
def projections(replayed: Replay) -> Projections:
    """The projections over them."""
    return replayed.projections


@pytest.fixture(scope="module")
def trades(projections: Projections) -> dict[str, list[Row]]:
    """The trades of each order, by its id, which is what the decision gives as its reasoning."""
    key = ("contest", "participant", "period")
    order = {tuple(row[name] for name in key): row["reasoning"] for row in projections.table("decisions").rows()}
    of_order = defaultdict(list)
    for row in projections.table("trades").rows():
        of_order[order[tuple(row[name] for name in key)]].append(row)
    return dict(of_order)


@pytest.fixture(scope="module")
def missing(source: Market, trades: dict[str, list[Row]]) -> dict[str, Decimal]:
    """The shares of each order that were not traded."""
    wanted = {tid: Decimal(order["yes_shares_delta"]) for tid, order in source.orders.items()}
    return {tid: abs(shares) - _of_yes(trades[tid]) * (1 if shares > 0 else -1) for tid, shares in wanted.items()}


@pytest.fixture(scope="module")
def journal(projections: Projections) -> dict[tuple[str, str, str], Decimal]:
    """The balance of every account by contest and question, in points; "" for what is of no question."""
    question = {row["log_position"]: row["question"] for row in projections.table("cash").rows()}
    balances: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for row in projections.table("journal").rows():
        balances[row["contest"], question[row["log_position"]], row["account"]] += Decimal(row["amount"])
    return balances


def _of_yes(legs: list[Row]) -> Decimal:
    """Shares of yes bought; those sold, and shares of no bought, count against them."""
    signs = (1 if (leg["type"] == "buy") == (leg["outcome"] == "yes") else -1 for leg in legs)
    return sum((Decimal(leg["shares"]) * sign for leg, sign in zip(legs, signs, strict=True)), Decimal(0))


def _sums(orders: dict[str, Row], key: Callable[[Row], Any], number: Callable[[Row], Decimal]) -> dict[Any, Decimal]:
    sums: dict[Any, Decimal] = defaultdict(Decimal)
    for order in orders.values():
        sums[key(order)] += number(order)
    return sums


def _slack(missing: dict[str, Decimal], order: Row) -> Decimal:
    """The largest error of an order in points: a share that is not traded is worth at most one."""
    return ROUNDING + abs(missing[order["tid"]])


def test_the_markets_are_decided_as_they_were(ledger: Ledger, projections: Projections) -> None:
    """Every command rebuilt from its events leads to them again, and its digest is that of its content: up to the
    answers of the first project, in a long run to the end.
    """
    recorded = [each for page in ledger.read() for each in page]
    end = DECIDED if LONG == 1 else len(recorded)
    while end < len(recorded) and recorded[end].command_id == recorded[end - 1].command_id:
        end += 1
    assert {type(each.event) for each in recorded[:end]} == {type(each.event) for each in recorded}
    assert audited(recorded[:end]).lossy_commands == 0
    assert projections.facts.as_of == ledger.head().position


def test_the_markets_have_the_digests_that_are_kept_of_them(path: Path, replayed: Replay) -> None:
    """The digests of their log and of every table are those in the file of kept digests."""
    kept_digests.check("replication", kept_digests.taken(path, replayed, kept_digests.WITHOUT["replication"]).digests)


def test_every_order_is_carried_out(outcomes: list[tuple[dict[str, Any], Any]], projections: Projections) -> None:
    """No command is refused, no decision is malformed, and every leg is carried out."""
    assert all(isinstance(outcome, Receipt) for _, outcome in outcomes)
    decisions = list(projections.table("decisions").rows())
    assert Counter(row["contest"] for row in decisions) == Counter(ORDERS) + Counter(TWICE)
    assert {(row["outcome"] in {"BET", "SELL"}, row["legs"], row["executed"]) for row in decisions} == {(True, 1, 1)}
    assert len(projections.table("refused_legs")) == 0


def test_what_an_order_is_follows_from_its_action(source: Market, trades: dict[str, list[Row]]) -> None:
    """Open buys, close sells, flip does both; 34 of both readings and 8 of neither do one of the two."""
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for tid, legs in trades.items():
        types[source.orders[tid]["action"]][" ".join(leg["type"] for leg in legs)] += 1
    assert types["open"] == {"buy": 889 + 946 + 380 + 1_142 + 1_070 + 428}
    assert types["flip"] == {"sell buy": 64}
    assert types["close"] == {"sell": 215 + 215 + 190 + 58 + 389 + 125 - 4, "sell buy": 3, "buy": 1}
    assert types["ambiguous"].total() == 34
    assert types["unmatched"].total() == 8


def test_a_fill_gives_the_shares_that_the_trader_got(source: Market, missing: dict[str, Decimal]) -> None:
    """At cost / shares; a sale is a percentage of the holding in 1e-6 of a percent, so it is close, not equal."""
    let_go = {tid: shares for tid, shares in missing.items() if abs(shares) > ROUNDING}
    assert all(0 < shares < DUST for shares in let_go.values())
    assert Counter(source.project[source.orders[tid]["qid"]] for tid in let_go) == LET_GO


def test_a_fill_costs_what_the_source_reports(source: Market, trades: dict[str, list[Row]]) -> None:
    """Paid or received, within the tolerance by which the source tells an action: of two legs, the sum of both."""
    wrong = set()
    for tid, legs in trades.items():
        reported = Decimal(source.orders[tid]["reported_cost"])
        ours = sum((Decimal(leg["amount"]) for leg in legs), Decimal(0))
        one = Decimal("0.006") + Decimal("0.002") * reported
        two = Decimal("0.02") + Decimal("0.003") * reported
        if abs(ours - reported) > (one if len(legs) == 1 else two):
            wrong.add(tid)
    assert wrong == OTHER_COST | {tid for tid, order in source.orders.items() if order["action"] == "unmatched"}


@pytest.mark.parametrize("project", MAKER)
def test_the_house_loses_what_the_market_maker_lost(
    source: Market, journal: dict[tuple[str, str, str], Decimal], missing: dict[str, Decimal], project: str
) -> None:
    """The known sums, and market by market what the orders at the maker's cost come to."""
    orders = source.of(project)
    expected = _sums(orders, lambda order: order["qid"], source.lost)
    slack = _sums(orders, lambda order: order["qid"], lambda order: _slack(missing, order))
    lost = {qid: -journal[project, qid, "house"] for qid in expected}
    assert all(abs(lost[qid] - expected[qid]) <= slack[qid] for qid in expected)
    total, largest = MAKER[project]
    dearest = max(lost, key=lost.__getitem__)
    assert abs(sum(lost.values()) - total) <= sum(slack.values()) + Decimal("0.00005")
    assert abs(lost[dearest] - largest) <= slack[dearest] + Decimal("0.005")


def test_the_postings_of_every_event_sum_to_nothing(projections: Projections) -> None:
    """The accounts sum to zero after every event too."""
    sums: dict[int, Decimal] = defaultdict(Decimal)
    for row in projections.table("journal").rows():
        sums[row["log_position"]] += Decimal(row["amount"])
    assert len(sums) > sum(ORDERS.values())
    assert set(sums.values()) == {0}


def test_what_traders_win_on_a_market_the_house_and_rounding_pay(
    source: Market, projections: Projections, journal: dict[tuple[str, str, str], Decimal]
) -> None:
    """Purchases, sales and settlements of a question; once it is settled nobody holds anything."""
    won: dict[str, Decimal] = defaultdict(Decimal)
    for row in projections.table("cash").rows():
        won[row["question"]] += Decimal(row["amount"]) * (row["question"] != "")
    for qid in {order["qid"] for order in source.orders.values()}:
        of = {account: journal[source.project[qid], qid, account] for account in ("cash", "house", "rounding")}
        assert won[qid] == of["cash"] == -of["house"] - of["rounding"]
        assert journal[source.project[qid], qid, "positions"] == 0


def test_every_trader_wins_what_the_source_says(
    source: Market, projections: Projections, missing: dict[str, Decimal]
) -> None:
    """The gain is the payout of all shares less the maker's cost."""
    expected = _sums(source.orders, lambda order: order["trader"], source.lost)
    slack = _sums(source.orders, lambda order: order["trader"], lambda order: _slack(missing, order))
    profit = {row["participant"]: Decimal(row["profit"]) for row in projections.table("accounts").rows()}
    assert profit.keys() == expected.keys()
    assert all(abs(profit[trader] - expected[trader]) <= slack[trader] for trader in profit)


@pytest.mark.parametrize("project", ORDERS)
def test_portfolios_are_worth_what_the_prices_of_the_day_say(
    source: Market, projections: Projections, missing: dict[str, Decimal], project: str
) -> None:
    """Portfolios are compared every midnight, from the opening to the settlement."""
    profit: dict[str, Decimal] = defaultdict(Decimal)
    for row in projections.table("portfolio_snapshots").only("contest", project).rows():
        if row["log_position"] is None:
            profit[row["at"]] += Decimal(row["profit"])
    days = sorted(profit)
    slack = sum((_slack(missing, order) for order in source.of(project).values()), Decimal(0))
    assert (days[0][11:], len(days)) == ("00:00:00Z", DAYS[project])
    for ours, expected in zip(map(profit.__getitem__, days), source.worth(project, days), strict=True):
        assert abs(ours - expected) <= slack


def test_a_board_shares_out_what_the_house_lost(
    projections: Projections, trades: dict[str, list[Row]], journal: dict[tuple[str, str, str], Decimal]
) -> None:
    """The profits of a contest are minus the house's and minus what rounding kept back; every purchase counts once."""
    board = projections.table("arena_leaderboard")
    bought = Counter(leg["contest"] for legs in trades.values() for leg in legs if leg["type"] == "buy")
    for project in ORDERS:
        rows = list(board.only("contest", project).rows())
        kept = sum(journal[key] for key in list(journal) if key[0] == project and key[2] in {"house", "rounding"})
        assert sum(Decimal(row["profit"]) for row in rows) == -kept
        assert sum(row["n"] for row in rows) == bought[project]
        assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)


@pytest.mark.parametrize("side", ["yes", "no"])
def test_last_prices_have_the_known_mean_brier_score(projections: Projections, side: str) -> None:
    """Over all 103 findings, those without trades too; of two outcomes it does not matter which."""
    briers = [Fraction(row["brier"]) for row in projections.table("marks").rows() if row["outcome"] == side]
    assert len(briers) == 103
    assert abs(sum(briers, Fraction(0)) / 103 - Fraction("0.192354912")) <= PUBLISHED


def test_the_figures_of_the_article_come_out(source: Market, projections: Projections) -> None:
    """PLOS ONE 16(4): e0248780, abstract: prices are right on 73% of 103 findings, and how they and the mean answers of
    the survey correlate with the outcomes.
    """
    prices = {
        row["question"]: float(row["price"]) for row in projections.table("marks").rows() if row["outcome"] == "yes"
    }
    answers = defaultdict[str, list[Fraction]](list)
    for row in projections.table("forecasts").rows():
        if row["outcome"] == "yes":
            answers[row["question"]].append(Fraction(row["probability"]))
    means = {qid: float(sum(said, Fraction(0)) / len(said)) for qid, said in answers.items()}
    findings = sorted(source.answer)
    happened = [float(source.answer[qid] == "yes") for qid in findings]
    right = sum((prices[qid] > 0.5) == (source.answer[qid] == "yes") for qid in findings)
    assert (len(findings), len(prices), len(means)) == (103, 103, 103)
    assert f"{right / 103:.0%}" == ARTICLE["share"]
    for figure, chances in (("prices", prices), ("survey", means)):
        assert f"{correlation([chances[qid] for qid in findings], happened):.3f}" == ARTICLE[figure]


def test_survey_answers_have_the_known_mean_brier_scores(projections: Projections) -> None:
    """Their mean on each finding, and each for itself, beside the stakes and in the same contests."""
    rows: Table = projections.table("brier_overall")
    answers = {row["participant"]: (row["n"], Fraction(row["pooled_brier"])) for row in rows.rows()}
    assert answers.pop("[consensus]") == (103, Fraction("0.205289349"))
    total = sum(n for n, _ in answers.values())
    assert total == 7_377
    single = sum((n * brier for n, brier in answers.values()), Fraction(0)) / total
    assert abs(single - Fraction("0.242771994")) <= PUBLISHED
