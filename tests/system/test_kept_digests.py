"""The numbers that people have: the bytes of logs and the digests of tables are what was kept of them.

The two large histories are checked where they are built: in test_flusight and in test_replication.
"""

from collections.abc import Iterator
from functools import cache

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.events import TAGS, Event, QuestionOpened
from forecast_ledger.ledger.model.log import START, unseal
from forecast_ledger.ledger.model.rules import BRIERS, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import encoded_fields
from forecast_ledger.projections.boards.totals import reference_labels
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from tests.kept_digests import (
    ADDITION,
    BOARDS,
    HISTORIES,
    KEPT,
    MARKETS,
    MEANS,
    MEDIANS,
    PAYOUTS,
    REFERENCES,
    RENEWAL,
    SOURCES,
    TOURNAMENTS,
    Digests,
    Taken,
    check,
    differences,
    kept,
    record_and_take,
    text,
    untaken,
)
from tests.support import seasons, trading_seasons
from tests.support.effort import LONG
from tests.system.test_stories import DATA

DRAWN = [
    *(f"tournament {seed}" for seed in TOURNAMENTS),
    *(f"means {seed}" for seed in MEANS),
    *(f"medians {seed}" for seed in MEDIANS),
]
SCORED = [*DRAWN, "samples"]  # histories whose scores have, between them, every kernel over every reference
SMALL = [name for name in HISTORIES if name not in SOURCES]

SEASONS = [name for name in SMALL if name.rpartition(" ")[2].isdigit()]
DRAWING = (  # tables of which nearly all the time is that of drawing again
    "baseline_differences",
    "calibration_test",
    "calibration_time_weighted",
    "corp_band",
    "intervals",
    "pairwise",
)
WITHOUT = dict.fromkeys(SEASONS[1::2] if LONG == 1 else (), DRAWING)


@cache
def small(name: str) -> Taken:
    """A history recorded, and its digests taken."""
    return record_and_take(name, WITHOUT.get(name, ()))


@pytest.mark.parametrize("name", SMALL)
def test_a_log_and_its_tables_are_what_they_were(name: str) -> None:
    """The bytes of the rows, the digest of the last one, and the version, length and digest of every table.

    In a short run, tables that draw are compared of every story and of every second season.
    """
    now, kept_of_it = small(name).digests, kept().get(name)
    tables = {table: kept_of_it.tables.get(table) for table in WITHOUT.get(name, ())} if kept_of_it else {}
    check(name, now._replace(tables={**now.tables, **tables}))


def test_every_history_and_every_table_is_kept_and_nothing_else() -> None:
    """A new story or table needs digests in the file; the file has none of those removed."""
    assert {*kept()} == {*HISTORIES}, RENEWAL
    for name, digests in kept().items():
        assert digests.tables.keys() == CATALOGUE.keys(), f"{name}\n{RENEWAL}"


def test_every_story_is_kept() -> None:
    """Every story has kept digests, whether its commands are JSON lines or CSV."""
    assert {path.name for path in DATA.iterdir() if path.is_dir()} <= HISTORIES.keys(), ADDITION


def test_the_file_is_as_it_would_be_written() -> None:
    """The file is in order of names, so that a renewal changes only the lines of renewed histories."""
    assert text(kept()) == KEPT.read_text(encoding="utf-8"), RENEWAL


def test_a_difference_names_the_history_the_table_and_both_digests() -> None:
    """Each difference is a line; a table that only one side has is a difference."""
    was = small("daily-brier").digests
    scores, cash = was.tables["scores"], was.tables["cash"]
    assert scores is not None
    assert cash is not None
    other = {name: each for name, each in was.tables.items() if name != "cash"}
    other["scores"] = scores._replace(version=scores.version + 1, digest="0" * 64)
    same_digest = f"version {scores.version}, {scores.rows} rows, digest {scores.digest}"
    other_digest = f"version {scores.version + 1}, {scores.rows} rows, digest {'0' * 64}"
    assert differences("daily-brier", was, was) == []
    assert differences("daily-brier", was, Digests((39, "1"), "2", other)) == [
        f"daily-brier, rows of the log: 39 rows, SHA-256 {was.rows[1]} was kept, 39 rows, SHA-256 1 is here",
        f"daily-brier, log digest: {was.head} was kept, 2 is here",
        f"daily-brier, table cash: version {cash.version}, 0 rows, digest {cash.digest} was kept, nothing is here",
        f"daily-brier, table scores: {same_digest} was kept, {other_digest} is here",
    ]


def test_a_new_table_is_not_taken_of_a_history_whose_source_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says so instead of keeping an empty table; whoever has the source sees a difference."""
    before = kept()["flusight"]
    monkeypatch.setattr("tests.kept_digests.CATALOGUE", {name: None for name in [*CATALOGUE, "new"] if name != "cash"})
    after = untaken(before)
    others = {name: each for name, each in before.tables.items() if name != "cash"}
    assert after == before._replace(tables=others | {"new": None})
    assert '"new": null' in text({"flusight": after})
    assert differences("flusight", after, before._replace(tables=others | {"new": before.tables["scores"]})) != []


# --- what the histories are good for


def test_every_kind_of_event_is_in_a_log_that_is_kept() -> None:
    """Otherwise the bytes of a kind of event could change unnoticed."""
    assert {type(event) for name in SMALL for event in events(name)} == TAGS.keys(), ADDITION


def test_every_table_has_rows_in_a_history_that_is_kept() -> None:
    """The digest of an empty table is that of its columns."""
    filled = {table for name in SMALL for table, each in kept()[name].tables.items() if each and each.rows}
    assert filled == CATALOGUE.keys(), ADDITION


def test_every_kernel_and_every_kind_of_question_has_a_score_that_is_kept() -> None:
    """The score is not 0, which many formulas give."""
    pairs = [pair for name in DRAWN for pair in scored(name)]
    kernels = {kernel(rules, kind) for name in SCORED for rules, kind in scored(name)}
    assert kernels == KERNELS.keys(), ADDITION
    clipped = RuleSet(name="clipped", kernel="ln", cdf_kernel="ln", quantile_kernel="absolute_clipped")
    pinball = structs.replace(clipped, quantile_kernel="pinball")
    assert {kind for _, kind in pairs} == {*seasons.kinds(clipped), *seasons.kinds(pinball)}


def test_every_kernel_has_a_score_that_is_kept_over_every_reference_that_it_goes_with() -> None:
    """Quantiles and samples are compared with nothing, with peers or with the median score."""
    pairs = [pair for name in SCORED for pair in scored(name)]
    found = {(kernel(rules, kind), rules.reference) for rules, kind in pairs}
    quantiles = {"pinball", "squared", "absolute", "absolute_clipped"}
    expected = {
        (name, reference)
        for name in KERNELS
        for reference in (("none", "peers") if name in quantiles else seasons.CHOICES["reference"]) + ("median_score",)
    }
    assert not expected - found, ADDITION
    assert not found - expected, (
        "a history in SCORED has these kernels over references that are not kept: leave them out"
    )


def test_every_preset_and_every_value_that_a_season_can_draw_for_a_rule_has_a_score_that_is_kept() -> None:
    """One by one; not all pairs of them."""
    later = [rules for name in BOARDS for rules, _ in scored(f"boards {name}")]
    later += [rules for name in PAYOUTS for rules, _ in scored(f"payouts {name}")]
    rule_sets = [rules for name in TOURNAMENTS for rules, _ in scored(f"tournament {name}")] + later
    assert {rules.name for rules in rule_sets} - {"drawn"} == {
        name for name, each in PRESETS.items() if not each.trading
    }
    for field, values in seasons.CHOICES.items():
        assert {getattr(rules, field) for rules in rule_sets} >= {*values}, field
    for field, values in seasons.LATER_CHOICES.items():
        assert {getattr(rules, field) for rules in later} >= {*values} - {""}, field


def test_every_kernel_of_payouts_has_a_score_of_them_that_is_kept() -> None:
    """Rule sets that leave them unscored are beside it."""
    found = set()
    for name in (*(f"payouts {seed}" for seed in PAYOUTS), *(f"means {seed}" for seed in MEANS)):
        taken = small(name)
        now, questions = status(taken.projections.facts), taken.projections.facts.questions
        paid = {question.question for question, shares in zip(questions, now.payouts, strict=True) if shares}
        for row in taken.projections.table("scores").rows():
            if row["question"] in paid and int(row["numerator"]):
                found.add((rules_of(taken, row["contest"]).payouts, rules_of(taken, row["contest"]).kernel))
    assert found == {("scored", kernel) for kernel in BRIERS}


def test_every_reference_forecaster_has_a_score_that_is_kept_over_every_reference() -> None:
    """But for those that score nothing: the consensus against itself, even odds against the uniform distribution."""
    scored_rows = {
        (row["participant"], rules_of(small(f"references {name}"), row["contest"]).reference)
        for name in REFERENCES
        for row in small(f"references {name}").projections.table("scores").rows()
        if int(row["numerator"])
    }
    nothing = {("[consensus]", "consensus"), ("[always-half]", "uniform"), ("[uniform]", "uniform")}
    every = {(label, name) for label in reference_labels(Facts()) for name in seasons.CHOICES["reference"]}
    assert {pair for pair in scored_rows if pair[0].startswith("[")} == every - nothing


def test_every_preset_and_every_value_that_a_season_of_trading_can_draw_has_trades_that_are_kept() -> None:
    """One by one; not all pairs of them."""
    histories = ["elsewhere", "exchange-fees", *(f"trading {seed}" for seed in MARKETS)]
    rule_sets = [rules for name in histories for rules in traded(name)]
    assert {rules.name for rules in rule_sets} - {"drawn", "short"} == {
        name for name, each in PRESETS.items() if each.trading
    }
    for field, values in trading_seasons.CHOICES.items():
        assert {encoded_fields(rules.trading)[field] for rules in rule_sets if rules.trading} >= {*values}, field


def events(name: str) -> Iterator[Event]:
    """A history's events."""
    return (recorded.event for recorded in unseal(small(name).rows, START))


def scored(name: str) -> Iterator[tuple[RuleSet, str]]:
    """The rules and the kind of question of every score of a history that is other than 0."""
    kinds = {event.question: kind_of(event) for event in events(name) if isinstance(event, QuestionOpened)}
    for row in small(name).projections.table("scores").rows():
        if int(row["numerator"]):
            yield rules_of(small(name), row["contest"]), kinds[row["question"]]


def traded(name: str) -> Iterator[RuleSet]:
    """The rules of every trade of a history."""
    for row in small(name).projections.table("trades").rows():
        yield rules_of(small(name), row["contest"])


def rules_of(of: Taken, contest: str) -> RuleSet:
    """A contest's rules."""
    return of.projections.facts.contests[contest].opened.rules


def kind_of(opened: QuestionOpened) -> str:
    """A question's kind, by the names of `seasons.kinds`."""
    if opened.range is None:
        return {"binary": "binary", "multiple_choice": "choice"}[opened.kind]
    log = "log_" if opened.range.zero_point else ""
    if opened.range.bins or len(opened.range.levels) > 1:
        return f"{log}cdf" if opened.range.bins else f"{log}quantiles"
    return f"{'open_' if opened.range.open_lower or opened.range.open_upper else ''}{log}point"


def kernel(rules: RuleSet, kind: str) -> str:
    """By what a question of a kind is scored."""
    if kind in {"binary", "choice"}:
        return rules.kernel
    return rules.cdf_kernel if kind.endswith("cdf") else rules.quantile_kernel
