"""Other ids of participants: what is recorded under one of them counts as of the last, from a log position on."""

from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, RestatedForecast, SubmitForecast
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.projection import Projections
from tests.support import oracle
from tests.support.given import (
    addition,
    bet,
    choices,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    opened,
    removal,
    renaming,
    resolution,
    restatement,
    trading_floor,
    withdrawal,
)

# A mean over the time from the opening on the 10th to the close on the 20th, as far as a forecast stands.
BRIER = RuleSet(name="mean", kernel="brier", period="covered", total="mean", least_probability_ppm=0)
START: list[AnyCommand] = [
    opened(),
    contest(rules=BRIER),
    contest("sealed", rules=BRIER),
    entry(),
    entry("sealed"),
]
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
