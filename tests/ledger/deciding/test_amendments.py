"""Tests of amended questions: the recorded events, and the refusals."""

from fractions import Fraction

from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.given import amendment, contest, entry, finalization, forecast, given, micros, opened, resolution

RAIN = opened()
CUP: list[AnyCommand] = [RAIN, opened("dry"), contest(), entry()]
REFUSED: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "weight", CUP, amendment(contest="cup")),
    ("malformed", "weight", CUP, amendment(weight=2, title="Rain?")),
    ("malformed", "weight", CUP, amendment(reason="none")),
    ("out_of_range", "weight", CUP, amendment(contest="cup", weight=-1)),
    ("out_of_range", "tags", CUP, amendment(tags=tuple(f"tag {number}" for number in range(101)))),
    ("unknown_contest", "contest", CUP, amendment(contest="bowl", weight=1)),
    ("unknown_question", "question", CUP, amendment("snow")),
    ("contest_finalized", "contest", [*CUP, finalization()], amendment(contest="cup", weight=1)),
    ("question_not_in_contest", "question", CUP, amendment("dry", contest="cup", weight=1)),
]


FUNCTIONS = ["amend_question"]


def test_the_event_has_what_was_given_and_nothing_else() -> None:
    """Null stays; an empty text or no tags take away what is there. A finalized contest keeps no title back."""
    given(*CUP).when(amendment(title="Rain?", tags=(), url="")).records(
        events.QuestionAmended(at=micros(14), question="rain", title="Rain?", tags=(), url="")
    )
    given(*CUP, resolution()).when(amendment(contest="cup", weight="0.5", reason="too many")).records(
        events.QuestionAmended(at=micros(14), question="rain", contest="cup", weight=500_000, reason="too many")
    )
    assert oracle.history(*CUP, finalization(), amendment())


def test_no_tags_differ_from_tags_that_stay() -> None:
    """So a retry that leaves the field out is another command."""
    first = structs.replace(amendment(title="Rain?", tags=()), id="a")
    with Ledger.open(":memory:") as ledger:
        outcomes = ledger.handle_many([structs.replace(RAIN, id="1"), first, first, structs.replace(first, tags=None)])
    told = [each.duplicate if isinstance(each, Receipt) else each.code for each in outcomes]
    assert told == [False, False, True, "command_id_reused"]


def test_the_last_weight_counts_in_its_contest_alone() -> None:
    """Ada has (1 - 0.7)² = 0.09 on rain and 0.7² = 0.49 on dry; the mean with weights 3 and 1 is 0.19."""
    rules = {"name": "mean", "kernel": "brier", "period": "covered", "total": "mean", "least_probability_ppm": 0}
    told: list[AnyCommand] = [
        RAIN,
        opened("dry"),
        *(each for name in ("cup", "bowl") for each in (contest(name, rules=rules), entry(name), entry(name, "dry"))),
        forecast(),
        forecast("dry"),
        resolution(),
        resolution("dry", outcome="no"),
        amendment(contest="cup", weight=5),
        amendment(contest="cup", weight=3),
    ]
    rows = {row["contest"]: row["score"] for row in oracle.projected(*told).table("leaderboard").rows()}
    assert rows == {"cup": "0.190000000", "bowl": f"{float(Fraction(9 + 49, 200)):.9f}"}


def test_a_question_has_its_last_title() -> None:
    """A replay as of an earlier log position has the one before."""
    told = oracle.history(opened(title="Rian?", tags=("wet",)), amendment(title="Rain?"))
    for count, title in ((1, "Rian?"), (2, "Rain?")):
        [row] = oracle.facts_in(told[:count]).questions
        assert (row.title, row.tags) == (title, ("wet",))


def test_a_refusal_names_what_is_to_be_given() -> None:
    """The message lists the fields."""
    outcome = given(*CUP).when(amendment(reason="none")).outcome
    assert isinstance(outcome, Refused)
    assert outcome.detail == "give one of title, tags, url, source, or contest and weight"
