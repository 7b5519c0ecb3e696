"""Brier samples: each participant's last forecast on a binary question, with the consensus."""

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
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
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
    """One participant's forecast on one question, in 1e-9; the consensus is -1 if there is none."""

    participant: str
    probability: int
    consensus: int
    happened: bool


Rows = Counter[Row]


def sampled(projections: Projections, contest: str = "cup") -> Rows:
    """Return the rows of a contest's sample, by name."""
    sample, owners, _ = projections.brier_sample(contest)
    labels = [*projections.facts.participant_codes.labels, CONSENSUS]
    assert owners == len(labels)
    columns = (sample.owner, sample.probability, sample.consensus, sample.happened)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return Counter(Row(labels[owner], *rest) for owner, *rest in rows)


def shown_sample(*made: AnyCommand, contest: str = "cup") -> dict[str, tuple[str, ...]]:
    """Return, by participant, the sampled forecast on each question and the consensus, in percent."""
    shown: dict[str, tuple[str, ...]] = {}
    for row in sorted(sampled(oracle.projected(*made), contest).elements()):
        beside = f" against {percent(row.consensus)}" if row.consensus >= 0 else ""
        shown[row.participant] = (*shown.get(row.participant, ()), f"{percent(row.probability)}{beside}")
    return shown


def percent(nanos: int) -> str:
    """Return a probability in percent, without trailing zeros."""
    return f"{nanos / 10**7:.7f}".rstrip("0").rstrip(".")


def own(*made: AnyCommand, who: str = "ada") -> list[str]:
    """Return the sampled forecasts of one participant, in percent, without the consensus."""
    return [row.split(" ")[0] for row in shown_sample(*made).get(who, ())]


def start(rules: Any = TIME, **fields: Any) -> list[AnyCommand]:
    """Return a question in a contest."""
    return [opened(reveals_at=REVEALS), contest(rules=rules), entry(**fields)]


def at(number: int, probability: str, who: str = "ada", hour: int = 0) -> AnyCommand:
    """Return a forecast on a day."""
    return forecast(participant=who, probability=probability, at=day(number, hour))


# --- the slow definition


def slow_sample(recorded: Sequence[Recorded], name: str) -> Rows:
    """Return, for each question, the forecasts that stand at the instant that counts, and the members' average."""
    whole = oracle.world(recorded)
    world = oracle.world(recorded, whole.contests[name].finalized)
    contest_state = world.contests[name]
    rules, rows = contest_state.opened.rules, Rows()
    apart = {who for who, level in contest_state.levels.items() if level in rules.scored_only_levels}
    apart |= {who for who, enrolled in contest_state.enrolled.items() if enrolled.bot and rules.bots == "scored_only"}
    for question, added in contest_state.entries.items():
        if not added.weight:
            continue
        question_state = world.questions[question]
        if question_state.opened.kind != "binary" or question_state.resolved is None:
            continue
        happened = question_state.resolved.outcome == 0
        stands = standing(world, question_state, rules, instant(question_state, added, rules))
        chances = {who: words.probabilities[0] for who, words in stands.items()}
        of_members = [chance for who, chance in chances.items() if who not in apart]
        consensus = -1
        if of_members:
            middle = (mean if rules.consensus == "mean" else median)(map(Fraction, of_members))
            consensus = round(middle)
            rows[Row(CONSENSUS, consensus, consensus, happened)] += 1
        for who, chance in chances.items():
            rows[Row(who, chance, consensus, happened)] += 1
    return rows


def instant(question_state: oracle.Question, added: events.QuestionAdded, rules: RuleSet) -> int:
    """Return the spot of a contest or, without one, the close, but at most the last µs of scored time."""
    spot = question_state.opened.closes_at
    if rules.sampling == "spot":
        spot = next(at for at in (added.spot_at, question_state.opened.reveals_at, spot) if at is not None)
    return min(spot, question_state.scored_until() - 1)


def standing(
    world: oracle.World, question_state: oracle.Question, rules: RuleSet, instant: int
) -> dict[str, events.ForecastMade]:
    """Return everybody's last forecast up to an instant, by the contest's clock, without withdrawals and early ones."""
    stands = {}
    for who, words in question_state.statements.items():
        times = [world.recorded_at[place] if rules.clock == "recorded" else word.at for place, word in words]
        heard = [(when, word) for when, (_, word) in zip(times, words, strict=True) if when <= instant]
        if not heard or instant < question_state.opened.opens_at:
            continue
        when, last = heard[-1]
        if isinstance(last, events.ForecastMade) and (rules.early_forecasts or when >= question_state.opened.opens_at):
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
    """Draw a log of binary questions, some in several contests, some of which are sealed early.

    Commands are recorded one after another, up to three units of time apart.
    """
    names = [f"q{number}" for number in range(draw(st.integers(1, 4)))]
    lasts = [draw(st.integers(4, 12)) for _ in names]
    openings = [draw(_opening(name, last)) for name, last in zip(names, lasts, strict=True)]
    threads = [draw(_question_thread(name, last)) for name, last in zip(names, lasts, strict=True)]
    threads += [draw(_contest_thread(f"cup{number}", names)) for number in range(draw(st.integers(1, 3)))]
    turns = [number for number, thread in enumerate(threads) for _ in thread]
    draw(st.randoms(use_true_random=False)).shuffle(turns)
    rests = [iter(thread) for thread in threads]
    recorded, _ = oracle.attempted([*openings, *(next(rests[turn]) for turn in turns)])
    clock = (oracle.moment(-3) - oracle.moment(0)) // timedelta(microseconds=1) + micros(10)
    ticking = []
    for row in recorded:
        clock += draw(st.integers(0, 3)) * oracle.UNIT
        ticking.append(structs.replace(row, recorded_at=clock))
    return ticking


@st.composite
def _opening(draw: st.DrawFn, name: str, last: int) -> AnyCommand:
    reveals = draw(st.none() | st.integers(1, last).map(oracle.moment))
    ends = {"opens_at": oracle.moment(0), "closes_at": oracle.moment(last), "reveals_at": reveals}
    return opened(name, at=oracle.moment(-9), **ends)


@st.composite
def _question_thread(draw: st.DrawFn, name: str, last: int) -> list[AnyCommand]:
    """Draw forecasts and withdrawals in order of time, sometimes an early close, and answers, some revoked."""
    thread: list[AnyCommand] = []
    for unit in sorted(draw(st.lists(st.integers(-2, last - 1), min_size=3, max_size=12))):
        who, when = draw(st.sampled_from(PEOPLE)), oracle.moment(unit)
        if draw(st.integers(0, 4)) == 0:
            thread.append(commands.WithdrawForecast(at=when, question=name, participant=who))
        else:
            chance = f"{draw(CHANCES)}e-9"
            thread.append(forecast(name, who, probability=chance, at=when))
    if draw(st.integers(0, 3)) == 0:
        thread.append(commands.CloseQuestion(at=oracle.moment(draw(st.integers(1, last))), question=name))
    for move in draw(st.lists(st.sampled_from(["resolve"] * 4 + ["revoke", "annul"]), min_size=1, max_size=4)):
        when = oracle.moment(50)
        if move == "resolve":
            known = draw(st.none() | st.integers(0, 14).map(oracle.moment))
            outcome = draw(st.sampled_from(["yes", "no"]))
            thread.append(resolution(name, at=when, outcome=outcome, known_at=known))
        else:
            undo = commands.AnnulQuestion if move == "annul" else commands.RevokeResolution
            thread.append(undo(at=when, question=name, reason="misread"))
    return thread


@st.composite
def _contest_thread(draw: st.DrawFn, name: str, questions: list[str]) -> list[AnyCommand]:
    """Draw a contest over some of the questions, with bots and exclusions."""
    thread: list[AnyCommand] = [contest(name, rules=draw(RULES))]
    for question in draw(st.lists(st.sampled_from(questions), min_size=1, unique=True)):
        spot = draw(st.none() | st.integers(0, 12).map(oracle.moment))
        plain = entry(name, question)
        thread += [structs.replace(plain, spot_at=spot), plain]  # the second if the spot is beyond the close
    for who in draw(st.lists(st.sampled_from(PEOPLE), max_size=2)):
        thread.append(enrolment(name, who, bot=draw(st.booleans())))
    for who in draw(st.lists(st.sampled_from(PEOPLE), max_size=2)):
        thread.append(exclusion(name, who, level=draw(st.sampled_from(["no_prize", "no_rank", "hidden"]))))
    if draw(st.integers(0, 2)) == 0:
        thread.append(finalization(name))
    return thread


@settings(max_examples=times(75), deadline=None)
@given(seasons(), st.sampled_from([1, 3, 1 << 20]))
def test_samples_agree_with_the_slow_definition(recorded: list[Recorded], chunk: int) -> None:
    """Every row of every contest agrees, for chunks of any size."""
    projections = Projections(oracle.facts_in(recorded), chunk)
    for name in projections.contests:
        assert sampled(projections, name) == slow_sample(recorded, name)


@settings(max_examples=times(36), deadline=None)
@given(seasons(), st.floats(0, 1))
def test_the_sample_of_a_shorter_log_uses_only_that_log(recorded: list[Recorded], share: float) -> None:
    """A shorter log has other last forecasts, answers and exclusions."""
    shorter = recorded[: int(share * len(recorded))]
    projections = Projections(oracle.facts_in(shorter))
    for name in projections.contests:
        assert sampled(projections, name) == slow_sample(shorter, name)


# --- whose forecast counts


def test_a_forecast_is_sampled_with_the_median_of_all() -> None:
    """The median of 80%, 40% and 30% is 40%; the consensus is compared with itself."""
    made = [*start(), at(11, "0.8"), at(12, "0.4", "bob"), at(13, "0.3", "cyd"), resolution()]
    assert shown_sample(*made) == {
        "[consensus]": ("40 against 40",),
        "ada": ("80 against 40",),
        "bob": ("40 against 40",),
        "cyd": ("30 against 40",),
    }


@pytest.mark.parametrize("outcome", ["yes", "no"])
def test_the_probability_is_that_of_yes_whatever_happened(outcome: str) -> None:
    """It is exact to 1e-9."""
    sample = sampled(oracle.projected(*start(), at(11, "0.123456789"), resolution(outcome=outcome)))
    assert sample[Row("ada", 123_456_789, 123_456_789, outcome == "yes")] == 1


@pytest.mark.parametrize("probability", ["0", "1", "0.000000001", "0.999999999"])
def test_no_floor_is_put_under_a_probability(probability: str) -> None:
    """A forecast that the logarithm counts as 0.1% is sampled unchanged."""
    assert own(*start(), at(11, probability), resolution()) == [percent(round(Fraction(probability) * NANO))]


def test_the_last_forecast_before_the_close_counts() -> None:
    """It is not the first, nor the one that stood longest."""
    assert own(*start(), at(10, "0.1"), at(11, "0.2"), at(19, "0.3", hour=23), resolution()) == ["30"]


def test_a_withdrawn_forecast_does_not_count_and_one_made_again_does() -> None:
    """It counts neither among the forecasts nor in the consensus."""
    made = [*start(), at(11, "0.8"), at(11, "0.4", "bob"), withdrawal(at=day(13))]
    assert shown_sample(*made, resolution()) == {"[consensus]": ("40 against 40",), "bob": ("40 against 40",)}
    assert own(*made, at(14, "0.9"), resolution()) == ["90"]


def test_after_an_early_close_the_forecasts_that_stood_then_count() -> None:
    """The question closed on the 15th; a forecast of the 16th is too late."""
    made = [*start(), at(11, "0.1"), at(14, "0.2"), at(16, "0.3")]
    assert own(*made, closing(at=day(15)), resolution()) == ["20"]


@pytest.mark.parametrize(("hour", "counts"), [(0, "10"), (1, "20")])
def test_once_the_answer_is_known_no_forecast_counts(hour: int, counts: str) -> None:
    """The answer is known on the 15th at 00:00 or 01:00; the forecast is made at 00:00."""
    made = [*start(), at(11, "0.1"), at(15, "0.2")]
    assert own(*made, resolution(known_at=day(15, hour))) == [counts]


def test_a_withdrawal_at_the_instant_the_answer_is_known_comes_too_late() -> None:
    """The forecast stood just before; a withdrawal one µs earlier would count."""
    made = [*start(), at(11, "0.1"), withdrawal(at=day(15))]
    assert own(*made, resolution(known_at=day(15))) == ["10"]
    later = day(15).replace("Z", ".000001Z")
    assert own(*made, resolution(known_at=later)) == []


def test_a_question_with_its_answer_known_at_the_opening_has_no_rows() -> None:
    """No time is scored."""
    assert shown_sample(*start(), at(5, "0.1"), at(11, "0.2"), resolution(known_at=OPENS)) == {}


def test_a_forecast_made_before_the_opening_counts_if_the_rules_let_it_stand() -> None:
    """Otherwise it counts a forecast made since the opening."""
    late = structs.replace(TIME, early_forecasts=False)
    assert own(*start(), at(5, "0.1"), resolution()) == ["10"]
    assert own(*start(late), at(5, "0.1"), resolution()) == []
    assert own(*start(late), at(5, "0.1"), at(10, "0.2"), resolution()) == ["20"]


# --- at which instant


def spot_sample(*made: AnyCommand, **fields: Any) -> list[str]:
    """Return the sampled forecasts at a spot; by default the reveal, on the 12th."""
    return own(*start(SPOT, **fields), *made, resolution())


def test_a_contest_with_a_spot_is_sampled_there() -> None:
    """The spot is that of the entry, or the reveal of the community forecast, on the 12th, or the close."""
    made = [at(10, "0.1"), at(13, "0.2"), at(16, "0.3")]
    assert spot_sample(*made) == ["10"]
    assert spot_sample(*made, spot_at=day(14)) == ["20"]
    unveiled = [opened(), contest(rules=SPOT), entry(), *made, resolution()]
    assert own(*unveiled) == ["30"]


def test_a_forecast_made_at_the_spot_counts_and_one_made_after_does_not() -> None:
    """It is exact to the µs."""
    before, after = day(11, 23).replace("00:00Z", "59:59.999999Z"), day(12).replace("Z", ".000001Z")
    assert spot_sample(at(12, "0.1")) == ["10"]
    assert spot_sample(forecast(probability="0.1", at=after)) == []
    assert spot_sample(forecast(probability="0.1", at=before), at(12, "0.2")) == ["20"]
    assert spot_sample(at(12, "0.1"), forecast(probability="0.2", at=after)) == ["10"]


def test_a_forecast_withdrawn_at_the_spot_does_not_count_and_one_withdrawn_after_does() -> None:
    """It is like a replaced forecast."""
    assert spot_sample(at(11, "0.1"), withdrawal(at=day(12))) == []
    assert spot_sample(at(11, "0.1"), withdrawal(at=day(12).replace("Z", ".000001Z"))) == ["10"]


@pytest.mark.parametrize(("spot", "counts"), [(OPENS, []), (day(13), ["10"]), (CLOSES, ["20"])])
def test_a_spot_after_scored_time_counts_as_its_end(spot: str, counts: list[str]) -> None:
    """Known on the 15th, when 20% has stood for two days; the spot is before, between, or at the close."""
    made = [*start(SPOT, spot_at=spot), at(11, "0.1"), at(13, "0.2", hour=1), at(15, "0.3")]
    assert own(*made, resolution(known_at=day(15))) == counts


@pytest.mark.parametrize("sampling", ["time", "day"])
def test_a_contest_without_spot_sampling_is_sampled_at_the_end(sampling: str) -> None:
    """Only rule sets with spot sampling use the spot of an entry or the reveal."""
    rules = structs.replace(TIME, sampling=sampling)
    made = [*start(rules, spot_at=day(12)), at(11, "0.1"), at(16, "0.2"), resolution()]
    assert own(*made) == ["20"]


def test_under_the_recorded_clock_a_forecast_counts_from_its_receipt() -> None:
    """The forecasts claim the 11th and the 12th and are recorded on the 11th and the 21st, a day late."""
    recorded = oracle.history(
        *start(structs.replace(TIME, clock="recorded")), at(11, "0.1"), at(12, "0.2"), resolution()
    )
    received = [micros(5)] * 3 + [micros(11), micros(21), micros(25)]
    ticking = [structs.replace(each, recorded_at=when) for each, when in zip(recorded, received, strict=True)]
    assert sampled(Projections(oracle.facts_in(ticking)))[Row("ada", NANO // 10, NANO // 10, True)] == 1
    claimed = oracle.projected(*start(), at(11, "0.1"), at(12, "0.2"), resolution())
    assert sampled(claimed)[Row("ada", NANO // 5, NANO // 5, True)] == 1


# --- the consensus


def crowd(rules: RuleSet, *more: AnyCommand, **chances: str) -> dict[str, tuple[str, ...]]:
    """Return the sample if these participants forecast in this order."""
    made = [at(11, chance, who) for who, chance in chances.items()]
    return shown_sample(*start(rules), *more, *made, resolution())


def test_the_consensus_is_the_average_of_the_contests_own_rules() -> None:
    """10%, 20% and 90% have the median 20% and the mean 40%."""
    made = {"ada": "0.1", "bob": "0.2", "cyd": "0.9"}
    for average, middle in (("median", "20"), ("community", "20"), ("mean", "40")):
        rules = structs.replace(TIME, consensus=average)
        assert crowd(rules, **made)[CONSENSUS] == (f"{middle} against {middle}",)


def test_the_consensus_by_recency_gives_the_newest_most_weight() -> None:
    """Weights e^(√i - √3): 0.4809, 0.7275, 1. The median by weight of 90%, 50%, 10% is 50%; the mean 43.03%.

    (0.9 · e^(1-√3) + 0.5 · e^(√2-√3) + 0.1) / (e^(1-√3) + e^(√2-√3) + 1), worked out to 1e-9.
    """
    made = {"ada": "0.9", "bob": "0.5", "cyd": "0.1"}
    three = oracle.EXACT.sqrt(3)
    first, second = (oracle.EXACT.exp(oracle.EXACT.sqrt(i) - three) for i in (1, 2))
    middle = (9 * Fraction(first) + 5 * Fraction(second) + 1) / (10 * (Fraction(first) + Fraction(second) + 1))
    recent = structs.replace(TIME, consensus_weights="recency")
    assert crowd(recent, **made)[CONSENSUS] == ("50 against 50",)
    assert crowd(structs.replace(recent, consensus="mean"), **made)[CONSENSUS][0].startswith(
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
    """At a tie of half of 1e-9, yes and no are rounded in opposite directions."""
    assert crowd(TIME, ada=low, bob=high)[CONSENSUS] == (f"{consensus} against {consensus}",)


def test_a_bot_is_compared_with_a_consensus_without_it() -> None:
    """Without the bot the median is 30%; if bots are members, the median of 20%, 40% and 90% is 40%."""
    bot = enrolment(participant="bot", bot=True)
    made = {"ada": "0.2", "bob": "0.4", "bot": "0.9"}
    apart = structs.replace(TIME, bots="scored_only")
    assert crowd(TIME, bot, **made)["bot"] == ("90 against 40",)
    assert crowd(apart, bot, **made) == {
        "[consensus]": ("30 against 30",),
        "ada": ("20 against 30",),
        "bob": ("40 against 30",),
        "bot": ("90 against 30",),
    }


@pytest.mark.parametrize(("level", "consensus"), [("no_prize", "40"), ("no_rank", "40"), ("hidden", "30")])
def test_the_rules_decide_whether_excluded_participants_are_in_the_consensus(level: Any, consensus: str) -> None:
    """Here hidden participants are not members; they are sampled in either case."""
    rules = structs.replace(TIME, scored_only_levels=("hidden",))
    judged_rows = crowd(rules, exclusion(participant="cyd", level=level), ada="0.2", bob="0.4", cyd="0.9")
    assert judged_rows["cyd"] == (f"90 against {consensus}",)


def test_without_a_member_there_is_no_consensus() -> None:
    """The bot alone has no consensus to be compared with."""
    rules = structs.replace(TIME, bots="scored_only")
    assert crowd(rules, enrolment(participant="bot", bot=True), bot="0.9") == {"bot": ("90",)}


def test_a_participant_may_have_the_name_of_the_consensus() -> None:
    """There are two rows."""
    projections = oracle.projected(*start(), at(11, "0.8", CONSENSUS), at(11, "0.4", "bob"), resolution())
    rows = {row["participant"]: row["brier"] for row in projections.table("brier").rows()}
    assert rows == {CONSENSUS: "0.040000000", "[[consensus]]": "0.160000000", "bob": "0.360000000"}


# --- which questions count


def test_only_questions_of_the_kind_binary_are_sampled() -> None:
    """A choice between yes and no is not a binary question; nor is a numeric question."""
    rules = structs.replace(TIME, cdf_kernel="ln")
    others: list[AnyCommand] = [choices("bill", ("yes", "no")), numeric(), contest(rules=rules)]
    others += [entry(question="bill"), entry(question="depth")]
    others += [forecast("bill", probabilities={"yes": "0.9", "no": "0.1"}), forecast("depth", cdf=[0, "0.5", 1, 1, 1])]
    others += [resolution("bill"), resolution("depth", value=1)]
    assert shown_sample(*others) == {}
    assert own(*others, opened(), entry(), at(11, "0.7"), resolution()) == ["70"]


def test_only_questions_that_are_resolved_and_not_annulled_are_sampled() -> None:
    """One of five counts: the others are open, annulled, annulled after a resolution, and revoked."""
    names = ("rain", "wind", "snow", "hail", "frost")
    made: list[AnyCommand] = [contest(rules=TIME)]
    for number, name in enumerate(names, 1):
        made += [opened(name), entry(question=name), forecast(name, probability=f"0.{number}")]
    made += [resolution(), annulment("snow"), resolution("hail"), annulment("hail")]
    made += [resolution("frost"), revocation("frost")]
    assert own(*made) == ["10"]
    assert own(*made, revocation("snow"), resolution("snow")) == ["10", "30"]


def test_each_contest_samples_a_question_at_its_own_instant() -> None:
    """A question is in two contests: at the reveal 10% stands, at the close 20%."""
    shared = [*start(SPOT), contest("cap", rules=TIME), entry("cap"), at(11, "0.1"), at(16, "0.2"), resolution()]
    assert shown_sample(*shared)["ada"] == ("10 against 10",)
    assert shown_sample(*shared, contest="cap")["ada"] == ("20 against 20",)


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
def test_commands_after_a_contest_is_finalized_change_nothing_in_it(later: list[AnyCommand]) -> None:
    """It counts in a contest that is still open."""
    made: list[AnyCommand] = [*start(), opened("wind"), entry(question="wind"), at(11, "0.7"), forecast("wind")]
    made += [contest("league", rules=TIME), entry("league"), entry("league", "wind"), resolution(), finalization()]
    before, after = oracle.projected(*made), oracle.projected(*made, *later)
    assert sampled(after) == sampled(before)
    assert sampled(after, "league") != sampled(before, "league")


def test_without_a_contest_a_question_or_a_forecast_there_are_no_rows() -> None:
    """There is no error either."""
    assert shown_sample(contest()) == {}
    assert shown_sample(*start()) == {}
    assert shown_sample(*start(), resolution()) == {}
    assert shown_sample(*start(), at(11, "0.7")) == {}


@pytest.mark.parametrize("preset", [name for name, rules in PRESETS.items() if rules.kernel != "none"])
def test_every_preset_has_the_same_sample_if_no_forecast_changes(preset: str) -> None:
    """The kernel, scale and totals of the rule set only matter for its own board."""
    made = [at(10, "0.8"), at(10, "0.4", "bob"), resolution()]
    assert shown_sample(*start(preset), *made) == {
        "[consensus]": ("60 against 60",),
        "ada": ("80 against 60",),
        "bob": ("40 against 60",),
    }
