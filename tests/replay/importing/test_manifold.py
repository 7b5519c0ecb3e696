"""Manifold's markets and bets: scores worked out by hand, who forecasts what, answers by share, bad records."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import DAY, read_instant
from forecast_ledger.ledger.model.events import ForecastMade, PricesQuoted, QuestionOpened, QuestionResolved
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.manifold import LONE_ANSWER, NO_MARKET, NOT_WHOLE, OTHER_JSON
from forecast_ledger.replay.importing.manifold_markets import NO_ANSWERS, NO_SHARES
from tests.support.paths import DATA
from tests.support.sources import edit, import_into, saved, table, ticking, told, zipped

FILES = DATA / "manifold-import"
BY_HAND = [  # data/manifold-import/README.md
    ("manifold cup", "Manifold", "0.340000000"),
    ("manifold cup", "ada", "0.190000000"),
    ("manifold fair b1", "Manifold", "0.178000000"),
    ("manifold fair b1", "bo", "0.160000000"),
    ("manifold rain", "Manifold", "0.135000000"),
    ("manifold rain", "ada", "0.073333333"),
    ("manifold rain", "bo", "0.160000000"),
    ("manifold snow", "Manifold", "0.032500000"),
    ("manifold snow", "ada", "0.002500000"),
]
POLL = "a market of the type POLL with the mechanism none"
FIRST = read_instant("2026-02-28T00:00:00Z")


def ms(day: int, milliseconds: int = 0) -> int:
    """A day of March 2026 in milliseconds since 1970."""
    return (FIRST + day * DAY) // 1_000 + milliseconds


RAIN = {
    "id": "r",
    "question": "Rain?",
    "outcomeType": "BINARY",
    "mechanism": "cpmm-1",
    "createdTime": ms(1),
    "closeTime": ms(11),
    "isResolved": False,
}
SEVERAL = RAIN | {"outcomeType": "MULTIPLE_CHOICE", "mechanism": "cpmm-multi-1", "shouldAnswersSumToOne": True}


def bet(day: int, before: Any, after: Any, user: str = "u", **extra: Any) -> dict[str, Any]:
    """A bet on the market of rain."""
    said = {"contractId": "r", "userId": user, "createdTime": ms(day), "amount": 5}
    return said | {"probBefore": before, "probAfter": after} | extra


def made(ledger: Ledger) -> list[tuple[int, str, int]]:
    """The forecasts: the day, whose, and the chance of the first outcome in percent."""
    found = [each for each in told(ledger) if isinstance(each, ForecastMade)]
    return [((each.at - FIRST) // DAY, each.participant, each.probabilities[0] // 10**7) for each in found]


def test_the_sample_scores_as_worked_out_by_hand() -> None:
    """Nothing is refused; what is not carried over is counted."""
    with ticking() as ledger:
        found = import_into(ledger, "manifold", FILES)
        assert found.counts["refused"] == 0
        assert found.left_out == {POLL: 1, NO_MARKET: 1}
        assert sorted(table(ledger, "scores", "question", "participant", "score")) == BY_HAND


def test_what_is_recorded_of_a_market() -> None:
    """Shares of MKT, N/A, names of answers without an order, a question for each answer that may be right."""
    with ticking() as ledger:
        import_into(ledger, "manifold", FILES)
        opened = {each.question: each for each in told(ledger) if isinstance(each, QuestionOpened)}
        answers = {each.question: each for each in told(ledger) if isinstance(each, QuestionResolved)}
        states = dict(zip(*zip(*table(ledger, "questions", "question", "state"), strict=True), strict=True))
    assert opened["manifold cup"].outcomes == ("Owls", "Foxes", "Bears")
    assert (opened["manifold fair b2"].title, opened["manifold fair b2"].group) == (
        "What will be at the fair?: An elephant",
        "What will be at the fair?",
    )
    assert (opened["manifold rain"].tags, opened["manifold rain"].url) == (
        ("weather",),
        "https://manifold.markets/gus/rain-slug",
    )
    assert answers["manifold snow"].payouts == (250_000_000, 750_000_000)
    assert (states["manifold hail"], states["manifold fair b2"]) == ("annulled", "unresolved")


def test_importing_again_counts_once_and_a_corrected_result_is_followed(tmp_path: Path) -> None:
    """Yes becomes a share of 0.8: the price is scored by it."""
    files = Path(shutil.copytree(FILES, tmp_path / "files"))
    with ticking() as ledger:
        first = import_into(ledger, "manifold", files).counts["accepted"]
        again = import_into(ledger, "manifold", zipped(files, tmp_path / "files.zip"))
        assert again.counts == {"accepted": 0, "duplicate": first, "refused": 0}
        edit(files / "markets.json", lambda text: text.replace('"resolution": "YES"', '"resolution": "MKT"', 1))
        assert import_into(ledger, "manifold", files).refused == []
        rows = {row[:2]: row[2] for row in table(ledger, "scores", "question", "participant", "score")}
    assert rows["manifold rain", "ada"] == "0.006666667"  # (0.1² x 4 + 0) / 6


NAMED = bet(4, 0.6, 0.7, userUsername="old")


@pytest.mark.parametrize(
    ("bets", "expected"),
    [
        ([bet(3, 0.5, 0.6)], [(1, "Manifold", 50), (3, "Manifold", 60), (3, "u", 60)]),
        ([bet(3, 0.5, 0.6, amount=-5, shares=-9)], [(1, "Manifold", 50), (3, "Manifold", 60), (3, "u", 60)]),
        ([bet(3, 0.5, 0.6, isRedemption=True)], [(1, "Manifold", 50), (3, "Manifold", 60)]),
        ([bet(3, 0.5, 0.5, amount=0)], [(1, "Manifold", 50)]),
        ([bet(3, 0, 0.5, isAnte=True)], []),
        ([bet(3, 0.5, 0.6, limitProb=0.6, fills=[])], [(1, "Manifold", 50), (3, "Manifold", 60)]),
        (
            [bet(3, 0.5, 0.5, limitProb=0.4, fills=[{"timestamp": ms(5), "amount": 5, "shares": 9}])],
            [(1, "Manifold", 50)],
        ),
        (
            [bet(3, 0.5, 0.6, limitProb=0.6, fills=[{"timestamp": ms(3, 900), "matchedBetId": None}])],
            [(1, "Manifold", 50), (3, "Manifold", 60), (3, "u", 60)],
        ),
        (
            [bet(4, 0.6, 0.7), bet(3, 0.5, 0.6, "v")],
            [(1, "Manifold", 50), (3, "Manifold", 60), (3, "v", 60), (4, "Manifold", 70), (4, "u", 70)],
        ),
        ([bet(12, 0.5, 0.6)], [(1, "Manifold", 50)]),
        ([bet(3, 0.5, 0.6, "Manifold")], [(1, "Manifold", 50), (3, "Manifold", 60), (3, "user Manifold", 60)]),
        ([bet(3, 0.5, 0.6, "")], [(1, "Manifold", 50), (3, "Manifold", 60)]),
        (
            [NAMED, bet(5, 0.7, 0.8, userUsername="new")],
            [(1, "Manifold", 60), (4, "Manifold", 70), (4, "new", 70), (5, "Manifold", 80), (5, "new", 80)],
        ),
    ],
)
def test_who_forecasts_what(bets: Any, expected: list[tuple[int, str, int]], tmp_path: Path) -> None:
    """The chance after a bet, of who made it and of the platform.

    Not of redemptions, of what only opens a market, of orders that are filled by nobody or later, after the close.
    """
    with ticking() as ledger:
        assert import_into(ledger, "manifold", saved(tmp_path / "a", m=[RAIN], b=bets)).refused == []
        assert made(ledger) == expected


def test_bets_of_one_millisecond_keep_their_order(tmp_path: Path) -> None:
    """The API gives the newest first: 0.5, 0.6, 0.7 in the order in which they were made; the last counts."""
    bets = [bet(4, 0.7, 0.8), bet(3, 0.6, 0.7), bet(3, 0.5, 0.6)]
    with ticking() as ledger:
        import_into(ledger, "manifold", saved(tmp_path / "a", m=RAIN, b={"bets": bets}))
        assert [each for each in made(ledger) if each[1] == "u"] == [(3, "u", 70), (4, "u", 80)]


def answers(*resolutions: dict[str, Any]) -> dict[str, Any]:
    """A market of answers a, b, … that are resolved so."""
    given = [{"id": name, "text": name.upper(), **each} for name, each in zip("abcd", resolutions, strict=False)]
    return SEVERAL | {"isResolved": True, "resolutionTime": ms(11), "answers": given}


@pytest.mark.parametrize(
    ("record", "expected", "note"),
    [
        (answers({}, {}, {}) | {"resolution": "b"}, (0, 1000, 0), None),
        (answers({}, {}, {}) | {"resolution": "MKT", "resolutions": {"a": 25, "c": 75}}, (250, 0, 750), None),
        (
            answers(*({"resolution": "MKT", "resolutionProbability": share} for share in (0.2, 0.2, 0.4))),
            (250, 250, 500),
            None,
        ),
        (answers({}, {}, {}) | {"resolution": "MKT"}, None, NO_SHARES),
        (answers({}, {}, {}) | {"resolution": "CANCEL"}, (), None),
        (RAIN | {"isResolved": True, "resolution": "MKT", "resolutionProbability": 0.3}, (300, 700), None),
        (RAIN | {"isResolved": True, "resolution": "MKT"}, None, NO_SHARES),
        (RAIN | {"isResolved": True, "resolution": "NO", "resolutionTime": ms(20)}, (0, 1000), None),
        (RAIN | {"isResolved": True, "resolution": "CANCEL", "resolutionTime": ms(20)}, (), None),
        (RAIN | {"isResolved": True}, None, NO_SHARES),
    ],
)  # fmt: skip
def test_how_a_market_ended(record: Any, expected: Any, note: str | None, tmp_path: Path) -> None:
    """By the answer that is named, by shares of each, by a share of yes, or N/A."""
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "a", m=record))
        assert (found.refused, found.left_out) == ([], {note: 1} if note else {})
        [(state,)] = table(ledger, "questions", "state")
        paid = [each for each in told(ledger) if isinstance(each, QuestionResolved)]
    assert state == ("unresolved" if expected is None else "resolved" if expected else "annulled")
    for each in paid:
        shares = each.payouts or tuple(10**9 * (number == each.outcome) for number in range(len(expected)))
        assert shares == tuple(share * 10**6 for share in expected)


def test_bets_on_answers_of_which_one_is_right_forecast_all(tmp_path: Path) -> None:
    """Bets of a group are made together; chances that do not sum to 1 are no forecast, and nearly 1 is divided out."""
    record = SEVERAL | {"answers": [{"id": name, "text": name.upper()} for name in "ab"]}

    def two(day: int, before: Any, after: Any, group: str) -> list[dict[str, Any]]:
        pairs = zip("ab", before, after, strict=True)
        return [bet(day, old, new, answerId=name, betGroupId=group) for name, old, new in pairs]

    bets = [
        *two(2, (0.5, 0.5), (0.6, 0.4), "g"),
        *two(3, (0.6, 0.4), (0.8, 0.205), "h"),
        bet(4, 0.8, 0.9, answerId="a"),
    ]
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "a", m=record, b=bets))
        assert made(ledger) == [(1, "Manifold", 50), *((2, who, 60) for who in ("Manifold", "u")),
                                *((3, who, 79) for who in ("Manifold", "u"))]  # fmt: skip
    assert found.left_out == {NOT_WHOLE: 1}  # 0.9 and 0.205


def test_answers_that_may_be_added_are_questions_of_their_own(tmp_path: Path) -> None:
    """Although one of them is right: a copy with one more answer has one more question."""
    with ticking() as ledger:
        for names in ("ab", "abc"):
            given = [{"id": name, "text": name.upper(), "createdTime": ms(2)} for name in names]
            record = SEVERAL | {"addAnswersMode": "ANYONE", "answers": given}
            bets = [bet(3, 0.5, 0.6, answerId="a")]
            assert import_into(ledger, "manifold", saved(tmp_path / "a", m=record, b=bets)).refused == []
        assert table(ledger, "questions", "question", "opens_at") == [
            (f"manifold r {name}", "2026-03-02T00:00:00Z") for name in "abc"
        ]
        assert [each[1] for each in made(ledger)] == ["Manifold", "Manifold", "u"]


def test_the_price_of_an_open_market_is_a_quote(tmp_path: Path) -> None:
    """At the time of its record; of several answers, the prices of all; none of a market that is resolved."""
    several = SEVERAL | {"id": "s", "answers": [{"id": n, "text": n, "prob": p} for n, p in (("a", 0.7), ("b", 0.3))]}
    rows = [
        RAIN | {"probability": 0.4},
        several,
        RAIN | {"id": "t", "prob": 0.9, "isResolved": True, "resolution": "NO"},
    ]
    with ticking() as ledger:
        import_into(ledger, "manifold", saved(tmp_path / "a", m=[row | {"lastUpdatedTime": ms(3)} for row in rows]))
        quotes = {each.quotes[0].question: each for each in told(ledger) if isinstance(each, PricesQuoted)}
        assert made(ledger) == []
    assert {name: each.quotes[0].prices for name, each in quotes.items()} == {
        "manifold r": (400_000_000, 600_000_000), "manifold s": (700_000_000, 300_000_000)
    }  # fmt: skip
    assert quotes["manifold r"].quoted_at == FIRST + 3 * DAY


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": None}, "bad_source id: the market 'Rain?': the market does not say it"),
        ({"createdTime": "soon"}, "bad_number createdTime"),
        ({"closeTime": None}, "bad_source closeTime: the market 'Rain?': the market does not say it"),
        ({"closeTime": ms(0)}, "wrong_order_of_instants closes_at"),
        ({"isResolved": 7}, "bad_source isResolved"),
        ({"isResolved": True, "resolution": "MKT", "resolutionProbability": 7}, "out_of_range resolutionProbability"),
        (SEVERAL | {"answers": [{"id": "a", "text": "A"}, {"id": "a", "text": "B"}]}, "bad_source answers"),
        (SEVERAL | {"answers": [{"id": "a", "text": "A"}, {"id": "b", "text": "A"}]}, "bad_source outcomes"),
    ],
)
def test_a_market_that_cannot_be_read_is_named_and_the_others_are_recorded(
    change: Any, expected: str, tmp_path: Path
) -> None:
    """With its place, and once."""
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "a", m=[RAIN | change, RAIN | {"id": "q"}]))
        assert table(ledger, "questions", "question") == [("manifold q",)]
    [line] = found.refused
    assert line.startswith(f"m.json, item 1: {expected}")


@pytest.mark.parametrize(
    "change",
    [{"probAfter": None}, {"probBefore": 2}, {"createdTime": -1}, {"amount": "x"}, {"fills": 7, "limitProb": 1}],
)
def test_a_bet_that_cannot_be_read_is_named_and_the_others_count(change: Any, tmp_path: Path) -> None:
    """With its place."""
    bets = [bet(2, 0.5, 0.4) | change, bet(3, 0.5, 0.6)]
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "a", m=RAIN, b=bets))
        assert [each for each in made(ledger) if each[1] == "u"] == [(3, "u", 60)]
    [line] = found.refused
    assert line.startswith("b.json, item 1: ")


def test_what_else_files_have_is_named(tmp_path: Path) -> None:
    """Comments, markets without their answers, other kinds of markets, other JSON; no market at all is refused."""
    apart = {"contractId": "s", "id": "a", "text": "red", "index": 0, "probability": 0.5}
    other = [{"contractId": "r", "content": "!"}, SEVERAL | {"id": "s"}, {"x": 1}, 7, apart]
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "a", m=[RAIN, *other]))
        assert found.left_out == {"a comment": 1, NO_ANSWERS: 1, OTHER_JSON: 2, LONE_ANSWER: 1}
        assert (
            "no market that can be read is there"
            in import_into(ledger, "manifold", saved(tmp_path / "b", m=other)).refused[0]
        )
        with pytest.raises(Refused, match="no JSON file"):
            import_into(ledger, "manifold", saved(tmp_path / "c"))


def test_markets_without_their_bets_take_no_forecast_back(tmp_path: Path) -> None:
    """A copy is whole for the bets of the markets of which it has one; then what it lacks was never made."""
    both = saved(tmp_path / "a", m=RAIN, b=[bet(3, 0.5, 0.6), bet(4, 0.6, 0.7, "v")])
    with ticking() as ledger:
        for folder, people in (
            (both, {"Manifold", "u", "v"}),
            (saved(tmp_path / "b", m=RAIN), {"Manifold", "u", "v"}),
            (saved(tmp_path / "c", m=RAIN, b=[bet(3, 0.5, 0.6)]), {"Manifold", "u"}),
            (saved(tmp_path / "d", m=RAIN, b=[bet(3, 0.5, 0.5, isAnte=True)]), set()),
        ):
            assert import_into(ledger, "manifold", folder).refused == []
            assert {who for (who,) in table(ledger, "standing", "participant")} == people


def test_of_several_records_of_a_market_the_newest_counts(tmp_path: Path) -> None:
    """By `lastUpdatedTime`, in whichever file, the last of equals."""
    rows = [
        RAIN | {"lastUpdatedTime": ms(at), "question": text} for at, text in ((3, "New?"), (2, "Old?"), (3, "Newest?"))
    ]
    with ticking() as ledger:
        import_into(ledger, "manifold", saved(tmp_path / "a", m=rows[:2]))
        assert table(ledger, "questions", "title") == [("New?",)]
        import_into(ledger, "manifold", saved(tmp_path / "b", m=rows))
        assert table(ledger, "questions", "title") == [("Newest?",)]
