"""Other ids of participants: what is recorded under one of them counts as of the last, from a log position on."""

from collections.abc import Sequence
from operator import itemgetter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, RestatedForecast, SubmitForecast
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.facts.columns import Facts, intervals
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    OPENS,
    addition,
    bet,
    choices,
    closing,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    opened,
    removal,
    renaming,
    resolution,
    restatement,
    trading_floor,
    withdrawal,
)

# --- Other ids of participants: what is recorded under one of them counts as of the last, from a log position on.


# A mean over the time from the opening on the 10th to the close on the 20th, as far as a forecast stands.
BRIER = RuleSet(name="mean", kernel="brier", period="covered", total="mean", least_probability_ppm=0)
START: list[AnyCommand] = [opened(), contest(rules=BRIER), contest("sealed", rules=BRIER), entry(), entry("sealed")]
# (1 - 0.7)² = 0.09 and (1 - 0.5)² = 0.25; each for half of the time, their mean is 0.17.
ADA, BO = forecast(at=day(10)), forecast(participant="bo", at=day(10), probability="0.5")
LATER_BO = forecast(participant="bo", at=day(15), probability="0.5")


def scores(*said: AnyCommand, contest: str = "cup", as_of: int | None = None) -> dict[str, str]:
    """The Brier score of each participant on rain."""
    recorded = oracle.history(*START, *said)
    table = Projections(oracle.facts_in(recorded[:as_of])).table("scores")
    return {row["participant"]: row["score"].rstrip("0") for row in table.rows() if row["contest"] == contest}


def rows(table: str, *said: AnyCommand) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [*Projections(oracle.facts_in(oracle.history(*said))).table(table).rows()]


@pytest.mark.parametrize("late", [False, True])
def test_a_participant_has_the_scores_of_its_former_id(late: bool) -> None:
    """Before the answer or after it; nobody else's score changes."""
    told: list[AnyCommand] = [resolution(), renaming(to="al")] if late else [renaming(to="al"), resolution()]
    assert scores(ADA, BO, *told) == {"al": "0.09", "bo": "0.25"}


def test_names_return_and_follow_one_another() -> None:
    """There and back, on and on, and back to the first: it is always the last."""
    there: list[AnyCommand] = [ADA, BO, renaming(to="al"), resolution()]
    assert scores(*there, renaming("al", "ada")) == {"ada": "0.09", "bo": "0.25"}
    assert scores(*there, renaming("al", "an")) == {"an": "0.09", "bo": "0.25"}
    assert scores(*there, renaming("al", "an"), renaming("an", "ada")) == {"ada": "0.09", "bo": "0.25"}


@pytest.mark.parametrize("first", [ADA, LATER_BO])
@pytest.mark.parametrize("who", ["ada", "bo"])
def test_forecasts_of_both_are_in_one_order_of_time(first: SubmitForecast, who: str) -> None:
    """0.7 from the 10th, 0.5 from the 15th, whichever was recorded first and whichever id is the last."""
    second = LATER_BO if first is ADA else ADA
    merge = renaming("ada" if who == "bo" else "bo", who)
    assert scores(first, second, merge, resolution()) == {who: "0.17"}
    assert scores(first, second, resolution(), merge) == {who: "0.17"}


def test_of_one_instant_what_was_recorded_later_counts() -> None:
    """Of two forecasts, and of a forecast and a withdrawal on the 13th, of which bo's stood from the 11th."""
    assert scores(ADA, BO, renaming(), resolution()) == {"bo": "0.25"}
    assert scores(BO, ADA, renaming(), resolution()) == {"bo": "0.09"}
    bo: list[AnyCommand] = [forecast(participant="bo"), withdrawal(participant="bo")]
    ada: AnyCommand = forecast(at=day(13))
    for said, coverage in (([*bo, ada], "0.900000000"), ([ada, *bo], "0.200000000")):
        table = rows("scores", *START, *said, renaming(), resolution())
        assert {row["coverage"] for row in table} == {coverage}


def test_a_withdrawal_ends_what_stands_of_the_participant() -> None:
    """0.7 from the 10th to the 15th, when bo withdraws 0.9 of the 12th: (0.09 x 2 + 0.01 x 3) / 5 = 0.042."""
    bo: list[AnyCommand] = [forecast(participant="bo", at=day(12), probability="0.9")]
    bo += [withdrawal(participant="bo", at=day(15))]
    assert scores(ADA, *bo, renaming(), resolution()) == {"bo": "0.042"}
    assert scores(*bo, ADA, renaming("bo", "ada"), resolution()) == {"ada": "0.042"}


def test_a_replay_as_of_an_earlier_position_has_the_ids_of_then() -> None:
    """The rename is at log position 9, after five commands, two forecasts and the answer."""
    told: list[AnyCommand] = [ADA, LATER_BO, resolution(), renaming()]
    assert scores(*told, as_of=8) == {"ada": "0.09", "bo": "0.25"}
    assert scores(*told, as_of=9) == {"bo": "0.17"}


def test_a_sealed_board_keeps_the_ids_that_it_was_sealed_with() -> None:
    """Also one that was sealed between two renames; another contest on the same question has the last."""
    told: list[AnyCommand] = [ADA, LATER_BO, resolution(), renaming(to="al"), finalization("sealed")]
    told += [renaming("al", "bo"), renaming("bo", "an")]
    assert scores(*told, contest="sealed") == {"al": "0.09", "bo": "0.25"}
    assert scores(*told) == {"an": "0.17"}


def test_a_restatement_is_of_the_ids_that_the_participant_has_then() -> None:
    """Before ada is bo, a restatement of bo leaves what ada said; after it, it does not."""
    assert scores(ADA, LATER_BO, restatement(participant="bo"), renaming(), resolution()) == {"bo": "0.09"}
    assert scores(ADA, LATER_BO, renaming(), restatement(participant="bo"), resolution()) == {}
    half = restatement(forecast(participant="bo", at=day(10), probability="0.5"), participant="bo")
    assert scores(ADA, LATER_BO, renaming(), half, resolution()) == {"bo": "0.25"}
    assert scores(ADA, renaming(), renaming("bo", "cy"), restatement(participant="cy"), resolution()) == {}


def test_peers_are_participants_and_not_ids() -> None:
    """Of three ids, ada and bo are one: the score of cy is compared with that of one other, not with two.

    Brier scores 0.25 (bo, recorded later) and 0.64 (cy, 0.2 for what happened): each minus the other's.
    """
    peers = contest("peers", rules=structs.replace(BRIER, name="peers", reference="peers"))
    cy = forecast(participant="cy", at=day(10), probability="0.2")
    told: list[AnyCommand] = [peers, entry("peers"), ADA, BO, cy, renaming(), resolution()]
    assert scores(*told, contest="peers") == {"bo": "-0.39", "cy": "0.39"}


MEMBERS = structs.replace(BRIER, bots="scored_only", best_of_entrant=True)


def test_enrolments_and_exclusions_are_of_the_participant() -> None:
    """Of two in one contest, that recorded later counts; an entrant is a participant too."""
    board: list[AnyCommand] = [contest("board", rules=MEMBERS), entry("board")]
    said = [*START, *board, ADA, BO, resolution()]

    def excluded(*more: AnyCommand) -> dict[str, str]:
        table = rows("leaderboard", *said, *more)
        return {row["participant"]: row["excluded"] for row in table if row["contest"] == "board"}

    ada, bo = exclusion("board"), exclusion("board", "bo", level="no_rank")
    assert excluded(ada, renaming(to="al")) == {"al": "no_prize", "bo": ""}
    assert excluded(ada, bo, renaming()) == {"bo": "no_rank"}
    assert excluded(bo, ada, renaming()) == {"bo": "no_prize"}
    assert excluded(ada, bo, exclusion("board"), renaming()) == {"bo": "no_prize"}
    team = enrolment("board", "bo", entrant="ada")
    assert excluded(team) == {"ada": "", "bo": "not_best"}
    assert excluded(team, renaming(to="al")) == {"al": "", "bo": "not_best"}
    assert excluded(ada, finalization("board"), renaming(to="al")) == {"ada": "no_prize", "bo": ""}


def test_the_table_of_forecasts_has_the_last_id_and_what_ended_each() -> None:
    """In order of time: bo's of the 12th is replaced by ada's of the 14th, which was recorded before it."""
    bo = forecast(participant="bo", at=day(12), probability="0.5")
    table = rows("forecasts", opened(), forecast(at=day(14)), bo, renaming())
    told = {(row["log_position"], row["participant"], row["to_at"], row["ended_by"]) for row in table}
    assert told == {(2, "bo", day(20), None), (3, "bo", day(14), "replaced")}


def test_what_stands_and_the_consensus_are_those_of_one_participant() -> None:
    """The 0.5 of the 15th was recorded first: 0.7 stands alone up to then, and never two."""
    table = rows("consensus", *START, LATER_BO, ADA, renaming(), resolution())
    shown = [(row["from_at"], row["count"], row["median"].rstrip("0")) for row in table if row["outcome"] == "yes"]
    assert shown == [(day(10), 1, "0.7"), (day(15), 1, "0.5")]


def test_admissions_have_the_id_of_their_contest() -> None:
    """The last one where the contest is open, that of the seal where it is not."""
    attested = structs.replace(BRIER, attested=True)
    cups: list[AnyCommand] = [opened(), *(contest(name, rules=attested) for name in ("open", "shut"))]
    told = rows("admissions", *cups, entry("open"), entry("shut"), ADA, finalization("shut"), renaming(to="al"))
    assert [(row["contest"], row["participant"]) for row in told] == [("open", "al"), ("shut", "ada")]


def shares(at: int, *given: str, **fields: Any) -> SubmitForecast:
    """A forecast on colour: of red, green and blue, and of violet if four are given."""
    names = ("red", "green", "blue", "violet")
    return forecast("colour", probabilities=dict(zip(names, given, strict=False)), at=day(at), **fields)


@pytest.mark.parametrize("answer", ["red", "violet"])
def test_forecasts_on_outcomes_that_change_are_those_of_one_participant(answer: str) -> None:
    """Two ids in any order, or one in order of time: the same score, before a change, in its grace period and after."""
    first, second = shares(11, "0.5", "0.3", "0.2"), shares(12, "0.1", "0.3", "0.6")
    third, fourth = shares(13, "0.4", "0.2", "0.1", "0.3"), shares(14, "0.1", "0.2", "0.1", "0.6")
    removed: AnyCommand = removal("green", at=day(16))
    rest: list[AnyCommand] = [resolution("colour", outcome=answer)]
    start: list[AnyCommand] = [choices(), contest(rules=BRIER), entry(question="colour")]

    def by(who: str, command: SubmitForecast) -> SubmitForecast:
        return structs.replace(command, participant=who)

    def scored(*said: AnyCommand) -> list[dict[str, Any]]:
        return rows("scores", *start, *said)

    alone = [by("bo", each) for each in (first, second, third, fourth)]
    one = scored(*alone[:2], addition(), *alone[2:], removed, *rest)
    assert len(one) == 1
    for ada, bo in ((second, first), (first, second)):
        for ada_later, bo_later in ((fourth, third), (third, fourth)):
            for order in ((0, 1), (1, 0)):
                before, after = [by("ada", ada), by("bo", bo)], [by("ada", ada_later), by("bo", bo_later)]
                both: list[AnyCommand] = [
                    before[order[0]],
                    before[order[1]],
                    addition(),
                    after[order[0]],
                    after[order[1]],
                    removed,
                ]
                assert scored(*both, renaming(), *rest) == one
                assert scored(*both, *rest, renaming()) == one


@pytest.mark.parametrize("seed", range(20))
def test_two_ids_are_as_one_that_said_all_in_order_of_time(seed: int) -> None:
    """Eight forecasts, each id's recorded in order of time, those of both in any order; several are of one instant."""
    random = Random(seed)
    made = [
        forecast(at=day(10 + at), probability=f"0.{random.randint(1, 9)}", participant=random.choice(["ada", "bo"]))
        for at in sorted(random.choices(range(9), k=8))
    ]
    by_id = {who: [each for each in made if each.participant == who] for who in ("ada", "bo")}
    mixed = [by_id[who].pop(0) for who in random.sample([each.participant for each in made], len(made))]
    in_time = [structs.replace(each, participant="bo") for each in sorted(mixed, key=lambda each: str(each.at))]
    one, two = ([*START, *said, resolution()] for said in (in_time, [*mixed, renaming()]))
    assert rows("scores", *one) == rows("scores", *two)
    assert rows("leaderboard", *one) == rows("leaderboard", *two)


def test_what_is_somebody_elses_from_an_instant_on_is_restated() -> None:
    """0.7 of the 10th is handed over on the 15th: (1 - 0.7)² = 0.09 for each, over half of the time each."""
    own = RestatedForecast(at=day(10), until=day(15), probability="0.7")
    rest = RestatedForecast(at=day(15), probability="0.7")
    whose = {"ada": (own,), "bo": (rest,)}
    handed = [structs.replace(restatement(participant=who), forecasts=made) for who, made in whose.items()]
    orders: list[list[AnyCommand]] = [[ADA, *handed, resolution()], [ADA, resolution(), *handed]]
    for said in orders:
        table = [row for row in rows("scores", *START, *said) if row["contest"] == "cup"]
        assert [(row["participant"], row["score"], row["coverage"]) for row in table] == [
            ("ada", "0.090000000", "0.500000000"),
            ("bo", "0.090000000", "0.500000000"),
        ]


FLOOR: list[AnyCommand] = [*trading_floor("ada", "bo"), decision(bet())]  # 500 for 1,250 shares of yes at 0.40


def test_an_account_is_that_of_the_new_id_in_every_table() -> None:
    """10,000 less 500, and 1,250 that the shares bring in the end: 750 more than there was."""
    said = [*FLOOR, renaming(to="al"), resolution(at=day(8)), renaming("al", "an")]
    [own] = [row for row in rows("accounts", *said) if row["participant"] == "an"]
    assert (own["cash"], own["profit"], own["net_deposits"]) == ("10750.00", "750.00", "10000.00")
    moves = [
        (row["movement"], row["amount"], row["balance"]) for row in rows("cash", *said) if row["participant"] == "an"
    ]
    assert moves == [
        ("granted", "10000.00", "10000.00"),
        ("bought", "-500.00", "9500.00"),
        ("settled", "1250.00", "10750.00"),
    ]
    board = [(row["participant"], row["rank"], row["profit"]) for row in rows("arena_leaderboard", *said)]
    assert board == [("an", 1, "750.00"), ("bo", 2, "0.00")]
    series = {row["name"]: row["profit"] for row in rows("arena_series", *said) if row["by"] == "participant"}
    assert series == {"an": "750.00", "bo": "0.00"}
    for table in ("positions", "trades", "decisions", "model_calls", "bet_brier", "portfolio_snapshots", "journal"):
        assert {row["participant"] for row in rows(table, *said)} - {"", "bo"} == {"an"}, table


def test_a_sealed_contest_keeps_the_accounts_of_its_ids() -> None:
    """Another contest that is open has the last one."""
    other: list[AnyCommand] = [cohort("next", at=day(8)), enrolment("next", "ada", at=day(8))]
    done = [*trading_floor("ada"), decision(), *other, finalization("week", at=day(9)), renaming(to="al")]
    assert {(row["contest"], row["participant"]) for row in rows("accounts", *done)} == {
        ("week", "ada"),
        ("next", "al"),
    }
    assert {row["participant"] for row in rows("decisions", *done)} == {"ada"}


# --- Intervals on which forecasts stand: from their making or the opening until replaced, withdrawn or closed.


Standing = list[tuple[str, int, int, int]]


def read(*commands: AnyCommand) -> Facts:
    """The facts of a log that opens a question and has these commands about it."""
    return oracle.facts_in(oracle.history(opened(), *commands))


def standing(facts: Facts, *, early: bool = True) -> Standing:
    """The participant, log position, start and end of each interval."""
    now = status(facts)
    rows = intervals(facts.forecasts, now.opens_at, now.closed_at, early=early)
    assert rows.question.tolist() == [0] * len(rows.row)
    people = [facts.participant_codes.labels[code] for code in rows.participant]
    positions = facts.forecasts.position[rows.row].tolist()
    return list(zip(people, positions, rows.start.tolist(), rows.end.tolist(), strict=True))


def test_a_forecast_stands_from_when_it_was_made_until_the_close() -> None:
    """The interval is half-open: the closing instant is outside."""
    assert standing(read(forecast(at=day(12)))) == [("ada", 2, micros(12), micros(20))]


def test_a_replaced_forecast_ends_where_the_next_begins() -> None:
    """Only forecasts of the same participant replace each other, even if others lie between them."""
    facts = read(forecast(at=day(11)), forecast(participant="bob", at=day(12)), forecast(at=day(13)))
    assert standing(facts) == [
        ("ada", 2, micros(11), micros(13)),
        ("ada", 4, micros(13), micros(20)),
        ("bob", 3, micros(12), micros(20)),
    ]


def test_a_forecast_before_and_one_after_a_gap_both_stand() -> None:
    """Nothing stands between the withdrawal and the next forecast."""
    facts = read(forecast(at=day(11)), withdrawal(at=day(13)), forecast(at=day(17)), withdrawal(at=day(18)))
    assert standing(facts) == [("ada", 2, micros(11), micros(13)), ("ada", 4, micros(17), micros(18))]


def test_several_may_withdraw_at_one_instant() -> None:
    """Every withdrawn forecast ends at that instant."""
    people = ["ada", "bob", "cyd"]
    forecasts = [forecast(participant=who, at=day(11)) for who in people]
    withdrawals = [withdrawal(participant=who, at=day(15)) for who in people]
    ends = [(who, number, micros(11), micros(15)) for number, who in enumerate(people, 2)]
    assert standing(read(*forecasts, *withdrawals)) == ends


def test_a_forecast_made_before_the_opening_stands_from_the_opening() -> None:
    """If several were made before the opening, the last one stands."""
    facts = read(forecast(at=day(6)), forecast(at=day(8)), forecast(participant="bob", at=day(9)))
    assert standing(facts) == [("ada", 3, micros(10), micros(20)), ("bob", 4, micros(10), micros(20))]


def test_an_early_forecast_never_stands_if_early_ones_do_not_count() -> None:
    """A forecast made at the opening instant is not early."""
    facts = read(
        forecast(at=day(9)),
        forecast(at=day(15)),
        forecast(participant="bob", at=day(9)),
        forecast(participant="cyd", at=OPENS),
    )
    assert standing(facts, early=False) == [("ada", 3, micros(15), micros(20)), ("cyd", 5, micros(10), micros(20))]


def test_a_forecast_withdrawn_before_the_opening_never_stands() -> None:
    """Nothing is left of it when the question opens."""
    assert standing(read(forecast(at=day(7)), withdrawal(at=day(8)))) == []
    assert standing(read(forecast(at=day(7)), withdrawal(at=OPENS))) == []


def test_an_early_close_ends_every_forecast() -> None:
    """Forecasts end at its instant, even those that were recorded before it; the earlier of two closes counts."""
    forecasts = [forecast(at=day(11)), forecast(participant="bob", at=day(14)), forecast(participant="cyd", at=day(16))]
    assert standing(read(*forecasts, closing(at=day(14)))) == [("ada", 2, micros(11), micros(14))]
    facts = read(*forecasts, closing(at=day(18)), closing(at=day(15)))
    assert standing(facts) == [("ada", 2, micros(11), micros(15)), ("bob", 3, micros(14), micros(15))]


def test_the_later_recorded_of_two_forecasts_at_one_instant_stands() -> None:
    """The first would stand for no time and has no interval."""
    facts = read(forecast(at=day(12)), forecast(at=day(12)))
    assert standing(facts) == [("ada", 3, micros(12), micros(20))]


def test_a_forecast_withdrawn_at_its_own_instant_leaves_no_interval() -> None:
    """The withdrawal does not end a forecast recorded after it at the same instant."""
    assert standing(read(forecast(at=day(12)), withdrawal(at=day(12)))) == []
    facts = read(forecast(at=day(12)), withdrawal(at=day(12)), forecast(at=day(12)))
    assert standing(facts) == [("ada", 4, micros(12), micros(20))]


def test_a_forecast_ends_by_itself_at_its_until() -> None:
    """Nothing stands from then on, until the participant forecasts again; one that ends after the close ends there."""
    facts = read(
        forecast(at=day(11), until=day(13)),
        forecast(participant="bob", at=day(12), until=day(21)),
        forecast(at=day(17), until=day(18)),
    )
    assert standing(facts) == [
        ("ada", 2, micros(11), micros(13)),
        ("ada", 4, micros(17), micros(18)),
        ("bob", 3, micros(12), micros(20)),
    ]


def test_what_comes_first_ends_a_forecast() -> None:
    """A later forecast, a withdrawal or an early close before `until`; `until` before them."""
    facts = read(forecast(at=day(11), until=day(15)), forecast(at=day(13)))
    assert standing(facts) == [("ada", 2, micros(11), micros(13)), ("ada", 3, micros(13), micros(20))]
    assert standing(read(forecast(until=day(15)), withdrawal(at=day(13)))) == [("ada", 2, micros(11), micros(13))]
    assert standing(read(forecast(until=day(15)), closing(at=day(14)))) == [("ada", 2, micros(11), micros(14))]
    assert standing(read(forecast(until=day(13)), closing(at=day(14)))) == [("ada", 2, micros(11), micros(13))]


def test_a_forecast_before_the_opening_that_ends_before_it_never_stands() -> None:
    """One that ends after the opening stands from the opening, if early forecasts count."""
    facts = read(forecast(at=day(6), until=OPENS), forecast(participant="bob", at=day(6), until=day(12)))
    assert standing(facts) == [("bob", 3, micros(10), micros(12))]
    assert standing(facts, early=False) == []


def test_a_forecast_recorded_after_its_end_has_no_weight_by_the_ledgers_clock() -> None:
    """With `clock = recorded` a forecast stands from when it was recorded, on the 12th, never beyond `until`."""
    history: list[AnyCommand] = [opened(), forecast(until=day(12)), forecast(participant="bob", until=day(13))]
    rules = RuleSet(name="x", kernel="brier", period="covered", total="mean", clock="recorded")
    history += [resolution(), contest(rules=rules), entry()]
    table = oracle.projected(*history, at=micros(12)).table("score_parts")
    assert [(row["participant"], row["from_at"], row["to_at"]) for row in table.rows()] == [("bob", day(12), day(13))]


def test_a_forecast_does_not_end_those_on_other_questions() -> None:
    """A forecast replaces one on the same question only."""
    facts = oracle.facts_in(
        oracle.history(
            opened(), opened("wind"), forecast(at=day(11)), forecast("wind", at=day(12)), forecast(at=day(13))
        )
    )
    now = status(facts)
    rows = intervals(facts.forecasts, now.opens_at, now.closed_at)
    assert rows.question.tolist() == [0, 0, 1]
    assert rows.end.tolist() == [micros(13), micros(20), micros(20)]
    assert rows.of(rows.row[[2, 0]]).start.tolist() == [micros(12), micros(11)]


def test_no_forecasts_stand_nowhere() -> None:
    """A question alone has no rows."""
    assert standing(read()) == []


def test_the_table_has_when_each_forecast_was_made_and_its_log_position() -> None:
    """Rows are sorted by question, participant and start; instants are in RFC 3339."""
    table = oracle.projected(
        opened(), forecast(participant="bob", at=day(12)), forecast(at=day(8)), forecast(at=day(14, 6))
    ).table("standing")
    assert [tuple(row.values()) for row in table.rows()] == [
        ("rain", "ada", "2026-03-10T00:00:00Z", "2026-03-14T06:00:00Z", "2026-03-08T00:00:00Z", 3),
        ("rain", "ada", "2026-03-14T06:00:00Z", "2026-03-20T00:00:00Z", "2026-03-14T06:00:00Z", 4),
        ("rain", "bob", "2026-03-12T00:00:00Z", "2026-03-20T00:00:00Z", "2026-03-12T00:00:00Z", 2),
    ]


@pytest.mark.parametrize("resolved", [[], [resolution(known_at=day(12))], [resolution(at=AFTER, outcome="no")]])
def test_intervals_do_not_depend_on_the_answer(resolved: list[AnyCommand]) -> None:
    """Scored time may end earlier, but the forecast stands until the close."""
    assert standing(read(forecast(at=day(11)), *resolved)) == [("ada", 2, micros(11), micros(20))]


def slowly(world: oracle.World) -> list[tuple[str, str, int, int, int]]:
    """Question, participant, log position, start, end: one row for as long as the same forecast stands."""
    rows: list[tuple[str, str, int, int, int]] = []
    for name, question in world.questions.items():
        before: dict[tuple[str, int], int] = {}  # participant and log position -> row
        for start, end in question.stretches(question.closed_at):
            now = {(who, position): -1 for who, (position, _) in question.standing(start).items()}
            for who, position in now:
                if (who, position) not in before:
                    rows.append((name, who, position, start, end))
                now[who, position] = place = before.get((who, position), len(rows) - 1)
                rows[place] = (*rows[place][:4], end)
            before = now
    return sorted(rows, key=itemgetter(0, 1, 3))


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_forecasts_stand_when_the_slow_definition_says(commands: Sequence[AnyCommand]) -> None:
    """The intervals equal those found by looking up every participant's last statement at every recorded instant."""
    recorded, _ = oracle.attempted(commands)
    table = Projections(oracle.facts_in(recorded)).table("standing")
    columns = itemgetter("question", "participant", "log_position", "from_at", "to_at")
    slow = [
        (question, who, position, format_instant(start), format_instant(end))
        for question, who, position, start, end in slowly(oracle.world(recorded))
    ]
    assert [columns(row) for row in table.rows()] == slow
