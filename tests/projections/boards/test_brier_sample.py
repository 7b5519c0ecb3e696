"""What Brier aggregates are computed from: each forecaster's last word on a binary question, beside the consensus."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from statistics import mean, median
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.catalogue.projection import Projections
from tests.support import oracle
from tests.support.given import (
    CLOSES,
    OPENS,
    REVEALS,
    annulment,
    choices,
    closing,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    micros,
    numeric,
    opened,
    resolution,
    revocation,
    withdrawal,
)

CONSENSUS = "[consensus]"
NANO = 10**9
SPOT = RuleSet(name="spot", kernel="ln", reference="uniform", sampling="spot")
TIME = structs.replace(SPOT, sampling="time")


class Row(NamedTuple):
    """What one forecaster is judged by on one question; probabilities in 1e-9, consensus -1 where there is none."""

    participant: str
    probability: int
    consensus: int
    happened: bool


Rows = Counter[Row]


def sampled(of: Projections, contest: str = "cup") -> Rows:
    """The rows of a contest's sample, by name."""
    sample, owners = of.brier_sample(contest)
    labels = [*of.facts.participant_codes.labels, CONSENSUS]
    assert owners == len(labels)
    columns = (sample.owner, sample.probability, sample.consensus, sample.happened)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Counter(Row(labels[owner], *rest) for owner, *rest in rows)


def found(*asked: AnyCommand, contest: str = "cup") -> dict[str, tuple[str, ...]]:
    """By participant, what is judged on each question, in percent: the forecast, and the consensus beside it."""
    shown: dict[str, tuple[str, ...]] = {}
    for row in sorted(sampled(oracle.projected(*asked), contest).elements()):
        beside = f" against {percent(row.consensus)}" if row.consensus >= 0 else ""
        shown[row.participant] = (*shown.get(row.participant, ()), f"{percent(row.probability)}{beside}")
    return shown


def percent(nanos: int) -> str:
    """A probability in percent, without zeros that say nothing."""
    return f"{nanos / 10**7:.7f}".rstrip("0").rstrip(".")


def own(*asked: AnyCommand, who: str = "ada") -> list[str]:
    """What one participant is judged by, in percent, whatever the consensus is."""
    return [each.split(" ")[0] for each in found(*asked).get(who, ())]


def start(rules: Any = TIME, **fields: Any) -> list[AnyCommand]:
    """One question in one contest."""
    return [opened(reveals_at=REVEALS), contest(rules=rules), entry(**fields)]


def at(number: int, probability: str, who: str = "ada", hour: int = 0) -> AnyCommand:
    """A forecast of so much on a day."""
    return forecast(participant=who, probability=probability, at=day(number, hour))


# --- the slow definition


def judged(recorded: Sequence[Recorded], name: str) -> Rows:
    """Question by question, whose forecast stands at the instant that counts, and what the members' average is then."""
    whole = oracle.world(recorded)
    known = oracle.world(recorded, whole.contests[name].finalized)
    held = known.contests[name]
    rules, rows = held.opened.rules, Rows()
    apart = {who for who, level in held.levels.items() if level in rules.scored_only_levels}
    apart |= {who for who, enrolled in held.enrolled.items() if enrolled.bot and rules.bots == "scored_only"}
    for question, added in held.entries.items():
        asked = known.questions[question]
        if asked.opened.kind != "binary" or asked.resolved is None:
            continue
        happened = asked.resolved.outcome == 0
        stands = standing(known, asked, rules, instant(asked, added, rules))
        said = {who: words.probabilities[0] for who, words in stands.items()}
        of_members = [chance for who, chance in said.items() if who not in apart]
        consensus = -1
        if of_members:
            middle = (mean if rules.consensus == "mean" else median)(map(Fraction, of_members))
            consensus = round(middle)
            rows[Row(CONSENSUS, consensus, consensus, happened)] += 1
        for who, chance in said.items():
            rows[Row(who, chance, consensus, happened)] += 1
    return rows


def instant(asked: oracle.Question, added: events.QuestionAdded, rules: RuleSet) -> int:
    """The spot of a contest that has one, else the close, but never later than the last µs of scored time."""
    spot = asked.opened.closes_at
    if rules.sampling == "spot":
        spot = next(each for each in (added.spot_at, asked.opened.reveals_at, spot) if each is not None)
    return min(spot, asked.scored_until() - 1)


def standing(
    known: oracle.World, asked: oracle.Question, rules: RuleSet, instant: int
) -> dict[str, events.ForecastMade]:
    """Everyone's last word up to that instant, by the contest's clock, unless it is a withdrawal or came too early."""
    stands = {}
    for who, words in asked.said.items():
        times = [known.recorded_at[place] if rules.clock == "recorded" else word.at for place, word in words]
        heard = [(when, word) for when, (_, word) in zip(times, words, strict=True) if when <= instant]
        if not heard or instant < asked.opened.opens_at:
            continue
        when, last = heard[-1]
        if isinstance(last, events.ForecastMade) and (rules.early_forecasts or when >= asked.opened.opens_at):
            stands[who] = last
    return stands


# --- random logs


PEOPLE = ("a", "b", "c", "d", "e")
CHANCES = st.sampled_from([0, 1, NANO // 2, NANO - 1, NANO]) | st.integers(0, NANO)
RULES = st.builds(
    structs.replace,
    st.just(RuleSet(name="drawn", kernel="ln", cdf_kernel="ln", reference="uniform")),
    sampling=st.sampled_from(["spot", "spot", "time", "day"]),
    consensus=st.sampled_from(["median", "community", "mean"]),
    clock=st.sampled_from(["claimed", "claimed", "recorded"]),
    bots=st.sampled_from(["members", "scored_only"]),
    scored_only_levels=st.sampled_from([(), ("hidden",), ("no_prize", "no_rank")]),
    early_forecasts=st.booleans(),
)


@st.composite
def seasons(draw: st.DrawFn) -> list[Recorded]:
    """A log of binary questions, some shared by several contests, some of which are frozen before all is known.

    Recorded one after another, up to three units of time apart.
    """
    names = [f"q{number}" for number in range(draw(st.integers(1, 4)))]
    lasts = [draw(st.integers(4, 12)) for _ in names]
    openings = [draw(_opening(name, last)) for name, last in zip(names, lasts, strict=True)]
    threads = [draw(_said(name, last)) for name, last in zip(names, lasts, strict=True)]
    threads += [draw(_held(f"cup{number}", names)) for number in range(draw(st.integers(1, 3)))]
    turns = [number for number, thread in enumerate(threads) for _ in thread]
    draw(st.randoms(use_true_random=False)).shuffle(turns)
    rests = [iter(thread) for thread in threads]
    recorded, _ = oracle.attempted([*openings, *(next(rests[turn]) for turn in turns)])
    clock = (oracle.moment(-3) - oracle.moment(0)) // timedelta(microseconds=1) + micros(10)
    ticking = []
    for each in recorded:
        clock += draw(st.integers(0, 3)) * oracle.UNIT
        ticking.append(structs.replace(each, recorded_at=clock))
    return ticking


@st.composite
def _opening(draw: st.DrawFn, name: str, last: int) -> AnyCommand:
    reveals = draw(st.none() | st.integers(1, last).map(oracle.moment))
    ends = {"opens_at": oracle.moment(0), "closes_at": oracle.moment(last), "reveals_at": reveals}
    return opened(name, at=oracle.moment(-9), **ends)


@st.composite
def _said(draw: st.DrawFn, name: str, last: int) -> list[AnyCommand]:
    """Forecasts and withdrawals in order of time, now and then an early close, and answers, some taken back."""
    said: list[AnyCommand] = []
    for unit in sorted(draw(st.lists(st.integers(-2, last - 1), min_size=3, max_size=12))):
        who, when = draw(st.sampled_from(PEOPLE)), oracle.moment(unit)
        if draw(st.integers(0, 4)) == 0:
            said.append(commands.WithdrawForecast(at=when, question=name, participant=who))
        else:
            chance = f"{draw(CHANCES)}e-9"
            said.append(forecast(name, who, probability=chance, at=when))
    if draw(st.integers(0, 3)) == 0:
        said.append(commands.CloseQuestion(at=oracle.moment(draw(st.integers(1, last))), question=name))
    for move in draw(st.lists(st.sampled_from(["resolve"] * 4 + ["revoke", "annul"]), min_size=1, max_size=4)):
        when = oracle.moment(50)
        if move == "resolve":
            known = draw(st.none() | st.integers(0, 14).map(oracle.moment))
            outcome = draw(st.sampled_from(["yes", "no"]))
            said.append(resolution(name, at=when, outcome=outcome, known_at=known))
        else:
            undo = commands.AnnulQuestion if move == "annul" else commands.RevokeResolution
            said.append(undo(at=when, question=name, reason="misread"))
    return said


@st.composite
def _held(draw: st.DrawFn, name: str, questions: list[str]) -> list[AnyCommand]:
    """A contest over some of the questions, with bots and exclusions."""
    held: list[AnyCommand] = [contest(name, rules=draw(RULES))]
    for question in draw(st.lists(st.sampled_from(questions), min_size=1, unique=True)):
        spot = draw(st.none() | st.integers(0, 12).map(oracle.moment))
        plain = entry(name, question)
        held += [structs.replace(plain, spot_at=spot), plain]  # the second if the spot is beyond the close
    for who in draw(st.lists(st.sampled_from(PEOPLE), max_size=2)):
        held.append(enrolment(name, who, bot=draw(st.booleans())))
    for who in draw(st.lists(st.sampled_from(PEOPLE), max_size=2)):
        held.append(exclusion(name, who, level=draw(st.sampled_from(["no_prize", "no_rank", "hidden"]))))
    if draw(st.integers(0, 2)) == 0:
        held.append(finalization(name))
    return held


@settings(max_examples=150, deadline=None)
@given(seasons(), st.sampled_from([1, 3, 1 << 20]))
def test_what_is_judged_is_that_of_the_slow_definition(recorded: list[Recorded], chunk: int) -> None:
    """Every row of every contest, however many forecasts are looked at together."""
    projections = Projections(oracle.told(recorded), chunk)
    for name in projections.contests:
        assert sampled(projections, name) == judged(recorded, name)


@settings(max_examples=60, deadline=None)
@given(seasons(), st.floats(0, 1))
def test_what_is_judged_as_of_a_cut_is_what_the_log_said_until_then(recorded: list[Recorded], share: float) -> None:
    """A shorter log, whose last words, answers and exclusions are other ones."""
    shorter = recorded[: int(share * len(recorded))]
    projections = Projections(oracle.told(shorter))
    for name in projections.contests:
        assert sampled(projections, name) == judged(shorter, name)


# --- whose forecast counts


def test_a_forecast_is_judged_beside_the_median_of_all() -> None:
    """Yes at 80%, 40% and 30%, of which 40% is the middle; the consensus is judged against itself."""
    asked = [*start(), at(11, "0.8"), at(12, "0.4", "bob"), at(13, "0.3", "cyd"), resolution()]
    assert found(*asked) == {
        "[consensus]": ("40 against 40",),
        "ada": ("80 against 40",),
        "bob": ("40 against 40",),
        "cyd": ("30 against 40",),
    }


@pytest.mark.parametrize("outcome", ["yes", "no"])
def test_the_probability_is_that_of_yes_whatever_happened(outcome: str) -> None:
    """To the last digit of 1e-9."""
    sample = sampled(oracle.projected(*start(), at(11, "0.123456789"), resolution(outcome=outcome)))
    assert sample[Row("ada", 123_456_789, 123_456_789, outcome == "yes")] == 1


@pytest.mark.parametrize("probability", ["0", "1", "0.000000001", "0.999999999"])
def test_no_floor_is_put_under_a_probability(probability: str) -> None:
    """What the rule set counts as 0.1% for its logarithm is judged as it was said."""
    assert own(*start(), at(11, probability), resolution()) == [percent(round(Fraction(probability) * NANO))]


def test_the_last_forecast_before_the_close_counts() -> None:
    """Not the first, nor the one that stood longest."""
    assert own(*start(), at(10, "0.1"), at(11, "0.2"), at(19, "0.3", hour=23), resolution()) == ["30"]


def test_a_withdrawn_forecast_does_not_count_and_one_made_again_does() -> None:
    """Neither among the forecasts nor in the consensus."""
    asked = [*start(), at(11, "0.8"), at(11, "0.4", "bob"), withdrawal(at=day(13))]
    assert found(*asked, resolution()) == {"[consensus]": ("40 against 40",), "bob": ("40 against 40",)}
    assert own(*asked, at(14, "0.9"), resolution()) == ["90"]


def test_after_an_early_close_the_forecasts_that_stood_then_count() -> None:
    """Closed on the 15th; what was said on the 16th, and found to be too late, is no forecast on this question."""
    asked = [*start(), at(11, "0.1"), at(14, "0.2"), at(16, "0.3")]
    assert own(*asked, closing(at=day(15)), resolution()) == ["20"]


@pytest.mark.parametrize(("hour", "counts"), [(0, "10"), (1, "20")])
def test_once_the_answer_is_known_no_forecast_counts(hour: int, counts: str) -> None:
    """Known on the 15th at 00:00 or 01:00; said at 00:00."""
    asked = [*start(), at(11, "0.1"), at(15, "0.2")]
    assert own(*asked, resolution(known_at=day(15, hour))) == [counts]


def test_a_withdrawal_at_the_instant_the_answer_is_known_comes_too_late() -> None:
    """The forecast stood just before; one µs earlier would have been in time."""
    asked = [*start(), at(11, "0.1"), withdrawal(at=day(15))]
    assert own(*asked, resolution(known_at=day(15))) == ["10"]
    later = day(15).replace("Z", ".000001Z")
    assert own(*asked, resolution(known_at=later)) == []


def test_where_the_answer_was_known_from_the_opening_nobody_is_judged() -> None:
    """No time was scored."""
    assert found(*start(), at(5, "0.1"), at(11, "0.2"), resolution(known_at=OPENS)) == {}


def test_a_forecast_made_before_the_opening_counts_where_the_rules_let_it_stand() -> None:
    """Else it takes one made since."""
    late = structs.replace(TIME, early_forecasts=False)
    assert own(*start(), at(5, "0.1"), resolution()) == ["10"]
    assert own(*start(late), at(5, "0.1"), resolution()) == []
    assert own(*start(late), at(5, "0.1"), at(10, "0.2"), resolution()) == ["20"]


# --- at which instant


def spotted(*said: AnyCommand, **fields: Any) -> list[str]:
    """What counts at a spot; by default the reveal, on the 12th."""
    return own(*start(SPOT, **fields), *said, resolution())


def test_a_contest_with_a_spot_is_judged_there() -> None:
    """At the entry's own; else when the community forecast is revealed, on the 12th; else at the close."""
    said = [at(10, "0.1"), at(13, "0.2"), at(16, "0.3")]
    assert spotted(*said) == ["10"]
    assert spotted(*said, spot_at=day(14)) == ["20"]
    unveiled = [opened(), contest(rules=SPOT), entry(), *said, resolution()]
    assert own(*unveiled) == ["30"]


def test_a_forecast_made_at_the_spot_counts_and_one_made_after_does_not() -> None:
    """To the µs."""
    before, after = day(11, 23).replace("00:00Z", "59:59.999999Z"), day(12).replace("Z", ".000001Z")
    assert spotted(at(12, "0.1")) == ["10"]
    assert spotted(forecast(probability="0.1", at=after)) == []
    assert spotted(forecast(probability="0.1", at=before), at(12, "0.2")) == ["20"]
    assert spotted(at(12, "0.1"), forecast(probability="0.2", at=after)) == ["10"]


def test_a_forecast_withdrawn_at_the_spot_does_not_count_and_one_withdrawn_after_does() -> None:
    """As with one replaced."""
    assert spotted(at(11, "0.1"), withdrawal(at=day(12))) == []
    assert spotted(at(11, "0.1"), withdrawal(at=day(12).replace("Z", ".000001Z"))) == ["10"]


@pytest.mark.parametrize(("spot", "counts"), [(OPENS, []), (day(13), ["10"]), (CLOSES, ["20"])])
def test_a_spot_after_scored_time_is_judged_as_that_ended(spot: str, counts: list[str]) -> None:
    """Known on the 15th, when 20% had stood for two days; the spot is before anything, between, or at the close."""
    asked = [*start(SPOT, spot_at=spot), at(11, "0.1"), at(13, "0.2", hour=1), at(15, "0.3")]
    assert own(*asked, resolution(known_at=day(15))) == counts


@pytest.mark.parametrize("sampling", ["time", "day"])
def test_a_contest_that_samples_no_spot_is_judged_at_the_end_whatever_its_entries_say(sampling: str) -> None:
    """The spot of an entry, and the reveal, are there for rule sets that use them."""
    rules = structs.replace(TIME, sampling=sampling)
    asked = [*start(rules, spot_at=day(12)), at(11, "0.1"), at(16, "0.2"), resolution()]
    assert own(*asked) == ["20"]


def test_under_the_recorded_clock_a_forecast_counts_from_its_receipt() -> None:
    """Claimed on the 11th and the 12th; received on the 11th and on the 21st, a day late."""
    recorded = oracle.history(
        *start(structs.replace(TIME, clock="recorded")), at(11, "0.1"), at(12, "0.2"), resolution()
    )
    received = [micros(5)] * 3 + [micros(11), micros(21), micros(25)]
    ticking = [structs.replace(each, recorded_at=when) for each, when in zip(recorded, received, strict=True)]
    assert sampled(Projections(oracle.told(ticking)))[Row("ada", NANO // 10, NANO // 10, True)] == 1
    claimed = oracle.projected(*start(), at(11, "0.1"), at(12, "0.2"), resolution())
    assert sampled(claimed)[Row("ada", NANO // 5, NANO // 5, True)] == 1


# --- the consensus


def crowd(rules: RuleSet, *more: AnyCommand, **chances: str) -> dict[str, tuple[str, ...]]:
    """What is judged where these participants said this, in this order."""
    said = [at(11, chance, who) for who, chance in chances.items()]
    return found(*start(rules), *more, *said, resolution())


def test_the_consensus_is_the_average_of_the_contests_own_rules() -> None:
    """Of 10%, 20% and 90%: the median 20%, the mean 40%."""
    said = {"ada": "0.1", "bob": "0.2", "cyd": "0.9"}
    for average, middle in (("median", "20"), ("community", "20"), ("mean", "40")):
        rules = structs.replace(TIME, consensus=average)
        assert crowd(rules, **said)[CONSENSUS] == (f"{middle} against {middle}",)


def test_the_consensus_by_recency_gives_the_newest_most_weight() -> None:
    """Weights e^(√i - √3): 0.4809, 0.7275, 1. The median by weight of 90%, 50%, 10% is 50%; the mean 43.03%.

    (0.9 · e^(1-√3) + 0.5 · e^(√2-√3) + 0.1) / (e^(1-√3) + e^(√2-√3) + 1), worked out to 1e-9.
    """
    said = {"ada": "0.9", "bob": "0.5", "cyd": "0.1"}
    three = oracle.EXACT.sqrt(3)
    first, second = (oracle.EXACT.exp(oracle.EXACT.sqrt(i) - three) for i in (1, 2))
    middle = (9 * Fraction(first) + 5 * Fraction(second) + 1) / (10 * (Fraction(first) + Fraction(second) + 1))
    recent = structs.replace(TIME, consensus_weights="recency")
    assert crowd(recent, **said)[CONSENSUS] == ("50 against 50",)
    assert crowd(structs.replace(recent, consensus="mean"), **said)[CONSENSUS][0].startswith(
        percent(round(middle * NANO))
    )


@pytest.mark.parametrize(
    ("low", "high", "consensus"),
    [
        ("0.5", "0.500000001", "50"),
        ("0.500000001", "0.500000002", "50.0000002"),
        ("0", "0.000000001", "0"),
        ("0.999999999", "1", "100"),
    ],
)
def test_a_consensus_between_two_units_goes_to_the_even_one(low: str, high: str, consensus: str) -> None:
    """Half of 1e-9; what yes loses no gains."""
    assert crowd(TIME, ada=low, bob=high)[CONSENSUS] == (f"{consensus} against {consensus}",)


def test_a_bot_is_judged_against_a_consensus_that_it_is_no_part_of() -> None:
    """Where bots are scored only; elsewhere it counts: the median of 20%, 40% and 90% is 40%, without the last 30%."""
    bot = enrolment(participant="bot", bot=True)
    said = {"ada": "0.2", "bob": "0.4", "bot": "0.9"}
    apart = structs.replace(TIME, bots="scored_only")
    assert crowd(TIME, bot, **said)["bot"] == ("90 against 40",)
    assert crowd(apart, bot, **said) == {
        "[consensus]": ("30 against 30",),
        "ada": ("20 against 30",),
        "bob": ("40 against 30",),
        "bot": ("90 against 30",),
    }


@pytest.mark.parametrize(("level", "consensus"), [("no_prize", "40"), ("no_rank", "40"), ("hidden", "30")])
def test_whether_the_excluded_are_part_of_the_consensus_is_up_to_the_rules(level: Any, consensus: str) -> None:
    """Here those who are hidden are not; they are judged themselves either way."""
    rules = structs.replace(TIME, scored_only_levels=("hidden",))
    judged_rows = crowd(rules, exclusion(participant="cyd", level=level), ada="0.2", bob="0.4", cyd="0.9")
    assert judged_rows["cyd"] == (f"90 against {consensus}",)


def test_without_a_member_there_is_no_consensus() -> None:
    """The bot alone has nothing to be measured against."""
    rules = structs.replace(TIME, bots="scored_only")
    assert crowd(rules, enrolment(participant="bot", bot=True), bot="0.9") == {"bot": ("90",)}


def test_a_participant_may_be_called_like_the_consensus() -> None:
    """They stay two."""
    projections = oracle.projected(*start(), at(11, "0.8", CONSENSUS), at(11, "0.4", "bob"), resolution())
    rows = {row["participant"]: row["brier"] for row in projections.table("brier").rows()}
    assert rows == {CONSENSUS: "0.040000000", "[[consensus]]": "0.160000000", "bob": "0.360000000"}


# --- which questions count


def test_only_binary_questions_are_judged_and_by_their_kind_not_their_outcomes() -> None:
    """A choice between yes and no is no binary question; the answer to a number is neither."""
    rules = structs.replace(TIME, cdf_kernel="ln")
    others: list[AnyCommand] = [choices("bill", ("yes", "no")), numeric(), contest(rules=rules)]
    others += [entry(question="bill"), entry(question="depth")]
    others += [forecast("bill", probabilities={"yes": "0.9", "no": "0.1"}), forecast("depth", cdf=[0, "0.5", 1, 1, 1])]
    others += [resolution("bill"), resolution("depth", value=1)]
    assert found(*others) == {}
    assert own(*others, opened(), entry(), at(11, "0.7"), resolution()) == ["70"]


def test_only_questions_that_are_resolved_and_not_annulled_are_judged() -> None:
    """Of five, one is open, one annulled, one annulled though resolved, one revoked."""
    names = ("rain", "wind", "snow", "hail", "frost")
    asked: list[AnyCommand] = [contest(rules=TIME)]
    for number, name in enumerate(names, 1):
        asked += [opened(name), entry(question=name), forecast(name, probability=f"0.{number}")]
    asked += [resolution(), annulment("snow"), resolution("hail"), annulment("hail")]
    asked += [resolution("frost"), revocation("frost")]
    assert own(*asked) == ["10"]
    assert own(*asked, revocation("snow"), resolution("snow")) == ["10", "30"]


def test_each_contest_judges_its_own_questions_by_its_own_instant() -> None:
    """One question in two contests: at the reveal 10% stood, at the close 20%."""
    shared = [*start(SPOT), contest("cap", rules=TIME), entry("cap"), at(11, "0.1"), at(16, "0.2"), resolution()]
    assert found(*shared)["ada"] == ("10 against 10",)
    assert found(*shared, contest="cap")["ada"] == ("20 against 20",)


@pytest.mark.parametrize(
    "later",
    [
        [revocation()],
        [revocation(), resolution(outcome="no")],
        [annulment()],
        [revocation(), at(19, "0.9")],
        [revocation(), withdrawal(at=day(19)), resolution()],
        [revocation(), closing(at=day(11)), resolution()],
        [resolution("wind")],
    ],
)
def test_what_is_said_after_a_contest_is_finalized_changes_nothing_in_it(later: list[AnyCommand]) -> None:
    """But it does in a contest that is still open."""
    asked: list[AnyCommand] = [*start(), opened("wind"), entry(question="wind"), at(11, "0.7"), forecast("wind")]
    asked += [contest("league", rules=TIME), entry("league"), entry("league", "wind"), resolution(), finalization()]
    before, after = oracle.projected(*asked), oracle.projected(*asked, *later)
    assert sampled(after) == sampled(before)
    assert sampled(after, "league") != sampled(before, "league")


def test_no_contest_no_question_and_no_forecast_are_no_rows() -> None:
    """And no error."""
    assert found(contest()) == {}
    assert found(*start()) == {}
    assert found(*start(), resolution()) == {}
    assert found(*start(), at(11, "0.7")) == {}


@pytest.mark.parametrize("preset", [name for name, rules in PRESETS.items() if rules.kernel != "none"])
def test_every_preset_judges_alike_where_nobody_changes_their_mind(preset: str) -> None:
    """Its kernel, scale and totals are for its own board."""
    said = [at(10, "0.8"), at(10, "0.4", "bob"), resolution()]
    assert found(*start(preset), *said) == {
        "[consensus]": ("60 against 60",),
        "ada": ("80 against 60",),
        "bob": ("40 against 60",),
    }
