"""Tests of the log's rows: they are sealed, and every kind of damage is found at its log position."""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import GENESIS, START, Checkpoint, Recorded
from forecast_ledger.ledger.model.provenance import Evidence, Provenance
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from tests.support.effort import LONG
from tests.support.given import NOW
from tests.support.paths import SOURCES

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
MICROS = st.integers(-(2**62), 2**62)
UNITS = st.integers(0, 10**18)
SIGNED = st.integers(-(10**18), 10**18)
ROWS = st.lists(UNITS, max_size=5).map(tuple)
RULES = st.sampled_from([
    *PRESETS.values(),
    RuleSet(name="capped", cdf_kernel="ln", density_floor="added", greatest_density_ppm=35_000_000),
    RuleSet(name='"\\', kernel="ln", early_forecasts=False, scored_only_levels=("hidden", "no_rank")),
])  # fmt: skip
RANGES = st.builds(
    events.NumericRange,
    lower=IDS,
    upper=IDS,
    bins=UNITS,
    open_lower=st.booleans(),
    open_upper=st.booleans(),
    zero_point=st.none() | IDS,
    levels=ROWS,
    decimals=st.integers(0, 12),
    samples=UNITS,
)
ATTESTATIONS = st.builds(
    events.Attestation,
    newest_source=st.none() | IDS,
    model_released=st.none() | IDS,
    training_cutoff=st.none() | IDS,
    restricted_sources=st.none() | st.booleans(),
    restricted_list=IDS,
    note=IDS,
)
POINTS = st.builds(
    events.StatedPoints,
    levels=ROWS,
    quantiles=st.lists(IDS, max_size=4).map(tuple),
    method=st.sampled_from(["linear", "monotone_cubic", "metaculus-2026-04"]),
)
SHARES = st.builds(events.StatedShares, shares=ROWS, rule=st.just("by_sum"))
_SIDES = st.lists(st.none() | st.integers(0, 10**9), max_size=4).map(tuple)
QUOTES = st.builds(events.Quote, question=IDS, prices=_SIDES, bids=_SIDES, asks=_SIDES)
REFUSED_QUOTES = st.builds(events.RefusedQuote, place=UNITS, question=IDS, code=IDS, field=IDS, given=IDS)
BETS = st.builds(events.Bet, question=IDS, side=IDS, amount=UNITS)
SALES = st.builds(events.Sale, position=IDS, percentage=UNITS)
CALLS = st.builds(
    events.ModelCall,
    input_tokens=st.none() | UNITS,
    output_tokens=st.none() | UNITS,
    cost=st.none() | UNITS,
    latency_ms=st.none() | UNITS,
    settings=st.dictionaries(IDS, IDS, max_size=3),
    shown=IDS,
)
OF_LEGS = ["period", "attempt", "leg", "position", "price", "quote", "cash", "shares", "confidence", "cost", "proceeds"]
OF_LEGS += ["fee", "requested", "parts"]
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["at", "opens_at", "closes_at", "known_at", "quoted_at"], MICROS),
    **dict.fromkeys(
        ["question", "participant", "to", "contest", "entrant", "title", "reason", "currency", "value"], IDS
    ),
    "ordered": st.none() | st.booleans(),
    **dict.fromkeys(["series", "family", "release", "source", "digest", "text", "fault", "code", "version"], IDS),
    **dict.fromkeys(["reasoning", "prompt", "response", "group", "category", "url"], IDS),
    **dict.fromkeys(
        ["pool", "payable_unit", "weight", "payout", "payout_unit", "reverses", "executed", "restated", *OF_LEGS], UNITS
    ),
    **dict.fromkeys(["outcome", "amount"], SIGNED),
    **dict.fromkeys(["probabilities", "cdf", "payouts"], ROWS),
    **dict.fromkeys(["reveals_at", "spot_at", "starts_at", "until", "grace_ends_at"], st.none() | MICROS),
    "spots": st.lists(st.builds(events.Spot, at=MICROS, weight=UNITS), max_size=3).map(tuple),
    "quotes": st.lists(QUOTES, max_size=3).map(tuple),
    "refused": st.lists(REFUSED_QUOTES, max_size=3).map(tuple),
    "bets": st.lists(BETS, max_size=3).map(tuple),
    "sells": st.lists(SALES, max_size=3).map(tuple),
    "action": st.sampled_from(["BET", "SELL", "HOLD"]),
    "policy": st.sampled_from(["refund_cost", "void_trades", "refund_stake"]),
    **dict.fromkeys(["quantiles", "samples"], st.lists(st.integers(-(10**13), 10**13), max_size=5).map(tuple)),
    "attestation": st.none() | ATTESTATIONS,
    "points": st.none() | POINTS,
    "normalized": st.none() | SHARES,
    "call": st.none() | CALLS,
    "error": IDS,
    "against": st.booleans(),
    "bot": st.booleans(),
    "hidden_coverage_weight": st.none() | UNITS,
    **dict.fromkeys(["outcomes", "added", "removed", "tags"], st.lists(IDS, max_size=4).map(tuple)),
    "kind": st.sampled_from(["binary", "multiple_choice", "numeric", "date", "discrete"]),
    "level": st.sampled_from(["no_prize", "no_rank", "hidden"]),
    "range": st.none() | RANGES,
    "rules": RULES,
}
TYPES = get_args(events.AnyEvent)
LINES = st.just("") | IDS
EVIDENCE = st.builds(Evidence, url=LINES, text=LINES, sha256=LINES)
# Where a command came from; UNSET if it does not say. A row that says nothing of it in an object is not one of ours.
PROVENANCE = st.just(UNSET) | st.builds(
    Provenance,
    **dict.fromkeys(["by", "reason", "correlation", "causation"], LINES),
    evidence=st.lists(EVIDENCE, max_size=3).map(tuple),
).filter(lambda said: said != Provenance())


def random_field(name: str) -> st.SearchStrategy[Any]:
    """Return random values of a field of an event."""
    assert name in FIELDS, f"FIELDS needs random values of the field {name}"
    return FIELDS[name]


EVENTS = st.one_of(
    *[
        st.builds(kind, **{name: random_field(name) for name in kind.__struct_fields__}) for kind in TYPES
    ]  # every field is random
)


def sealed(
    *happened: events.AnyEvent, before: Checkpoint = START, said: Sequence[Provenance | UnsetType] = ()
) -> list[bytes]:
    """Return rows that follow one another. said: where the commands of the first rows came from."""
    rows = []
    for event, provenance in zip_longest(happened, said, fillvalue=UNSET):
        assert not isinstance(event, UnsetType)
        position = before.position + 1
        recorded = Recorded(
            position=position,
            recorded_at=NOW + position,
            command_id=f"c{position}",
            command="0" * 32,
            previous=before.digest,
            event=event,
            provenance=provenance,
        )
        row, digest = log.seal(recorded)
        before = Checkpoint(position, digest)
        rows.append(row)
    return rows


def resealed(row: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a row as another program might write it: changed, with the digest of its new bytes."""
    fields = json.loads(row)
    change(fields)
    del fields["digest"]
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
    return body + b',"digest":"' + sha256(body).hexdigest().encode() + b'"}'


THREE = sealed(
    events.QuestionOpened(at=1, question="q", kind="binary", outcomes=("yes", "no"), opens_at=1, closes_at=9),
    events.ForecastMade(at=2, question="q", participant="ada", probabilities=(7 * 10**8, 3 * 10**8)),
    events.QuestionResolved(at=9, question="q", outcome=0, known_at=9),
)


def test_a_row_is_one_line_of_json_and_ends_in_the_digest_of_its_own_bytes() -> None:
    """The digest covers the whole row except itself, and each row has the digest of the row before."""
    previous = GENESIS
    for position, row in enumerate(THREE, 1):
        fields = json.loads(row)
        assert list(fields) == ["position", "recorded_at", "command_id", "command", "previous", "event", "digest"]
        assert (fields["position"], fields["previous"]) == (position, previous)
        body, comma, _ = row.rpartition(b',"digest":')
        assert comma
        assert b"\n" not in row
        previous = sha256(body).hexdigest()
        assert fields["digest"] == previous


def test_the_bytes_of_a_row_do_not_change_with_the_version_of_this_program() -> None:
    """Digests from earlier versions must still match: these bytes were put together by hand."""
    body = (
        b'{"position":1,"recorded_at":1774915200000001,"command_id":"c1","command":"00000000000000000000000000000000",'
        b'"previous":"0000000000000000000000000000000000000000000000000000000000000000",'
        b'"event":{"type":"forecast_withdrawn.v1","at":5,"question":"q","participant":"\xc3\xa9\\""}'
    )
    [row] = sealed(events.ForecastWithdrawn(at=5, question="q", participant='\u00e9"'))
    assert row == body + b',"digest":"' + sha256(body).hexdigest().encode() + b'"}'


@pytest.mark.parametrize(
    "recorded_at", [-62_135_596_800_000_001, 253_402_300_800_000_000, pytest.param(10**699, id="700 digits")]
)
def test_a_row_that_was_recorded_outside_the_calendar_is_refused(recorded_at: int) -> None:
    """The ledger records in the years 1 to 9999, whose first and last instants are read; the position is named."""
    for micros in (-62_135_596_800_000_000, 253_402_300_799_999_999):
        row = resealed(THREE[0], lambda fields, at=micros: fields.update(recorded_at=at))  # type: ignore[misc]
        assert log.unseal([row], START)[0].recorded_at == micros
    with pytest.raises(Corrupt, match="recorded_at") as refused:
        log.unseal([resealed(THREE[0], lambda fields: fields.update(recorded_at=recorded_at)), *THREE[1:]], START)
    assert refused.value.position == 1


def test_the_parts_of_a_row_are_read_without_decoding_its_event() -> None:
    """The digest is computed from the bytes before it, not read from the row; the event's JSON is part of the row."""
    tricky = events.ForecastWithdrawn(at=5, question='","event":{"digest":"', participant='"}')
    for row in sealed(*[recorded.event for recorded in log.unseal(THREE, START)], tricky):
        content, _, end = row.rpartition(b',"digest":"')
        assert log.digested_bytes(row) == content
        assert log.compute_digest(row) == sha256(content).hexdigest() == log.stated_digest(row) == end[:-2].decode()
        assert json.loads(log.event_text(row.decode())) == json.loads(row)["event"]
        assert log.command_id_of(row) == json.loads(row)["command_id"]
    forged = THREE[0][:-66] + b"0" * 64 + b'"}'
    assert log.stated_digest(forged) == "0" * 64
    assert log.compute_digest(forged) == log.compute_digest(THREE[0])


@pytest.mark.parametrize(
    "row", [b"", b"{}", b'"}', b"\xff" * 99, THREE[0][:-1], THREE[0] + b" ", THREE[0][1:-2] + b"  "]
)
def test_a_row_without_a_digest_at_its_end_states_none(row: bytes) -> None:
    """If the last bytes are not those of a digest, the stated digest is "none"."""
    assert log.stated_digest(row) == "none"


def test_around_an_event_that_cannot_be_read_the_envelope_is() -> None:
    """If the type of an event is unknown, the position, instant and previous digest can still be read."""
    row = THREE[1].replace(b"forecast_made.v1", b"forecast_made.v9")
    with pytest.raises(Corrupt, match="this version cannot read the row"):
        log.decode_row(row, 2)
    assert log.decode_envelope(row) == log.Envelope(2, NOW + 2, log.stated_digest(THREE[0]))
    assert log.decode_envelope(b"no JSON") is None


def _changed(row: bytes, old: bytes, new: bytes) -> bytes:
    """Return a row with other bytes, and the digest of these."""
    changed, _ = log.with_digest(log.digested_bytes(row).replace(old, new))
    assert changed != row
    return changed


@pytest.mark.parametrize(
    ("old", "new", "unknown"),
    [
        (b"forecast_made.v1", b"forecast_made.v9", "Invalid value 'forecast_made.v9' - at `$.event.type`"),
        (
            b'"participant":"ada"',
            b'"participant":"ada","odds":2',
            "Object contains unknown field `odds` - at `$.event`",
        ),
        (b',"event":', b',"trace":"x","event":', "Object contains unknown field `trace`"),
    ],
)
def test_what_a_newer_version_wrote_is_no_damage(old: bytes, new: bytes, unknown: str) -> None:
    """An unknown type or field is one, if the row matches its digest and follows the row before it."""
    rows = [THREE[0], _changed(THREE[1], old, new)]
    with pytest.raises(NewerVersion) as newer:
        log.unseal(rows, log.START)
    assert (newer.value.position, newer.value.kind) == (2, "newer_version")
    assert str(newer.value) == (
        f"log position 2: this version cannot read the row: {unknown}; "
        "upgrade this process: a newer version wrote this row"
    )
    assert [[row.position for row in page] for page in _until_newer([rows])] == [[1]]


def _until_newer(pages: list[list[bytes]]) -> Iterator[list[Recorded]]:
    with pytest.raises(NewerVersion):
        yield from log.unseal_pages(iter(pages))


@pytest.mark.parametrize(
    "rows",
    [
        [THREE[0], THREE[1].replace(b"forecast_made.v1", b"forecast_made.v9")],  # its digest is another
        [THREE[0], _changed(THREE[2], b"question_resolved.v1", b"question_resolved.v9")],  # a row is missing before it
        [
            THREE[0],
            _changed(_changed(THREE[1], b"forecast_made.v1", b"forecast_made.v9"), b'"previous":"', b'"previous":"0'),
        ],
        [THREE[0], _changed(THREE[1], b'"participant":"ada"', b'"participant":7')],  # of a known field
        [THREE[0], _changed(THREE[1], b'"position":2', b'"position":')],  # not even JSON
    ],
)
def test_damage_does_not_pass_for_a_newer_version(rows: list[bytes]) -> None:
    """A row is a newer version's only if it is whole and in its place, and what is wrong is only that it is unknown."""
    with pytest.raises(Corrupt) as damage:
        log.unseal(rows, log.START)
    assert (damage.value.position, damage.value.kind) == (2, "corrupt")


def test_one_module_knows_the_bytes_of_a_row() -> None:
    """Only `log` knows the bytes before the digest and before the event of a row; other modules call it.

    The script that a pack carries checks a log without this program, and is the one exception.
    """
    marks = ('"digest":"', '","event":')
    knowing = {path.stem for path in SOURCES if any(mark in path.read_text("utf-8") for mark in marks)}
    assert knowing == {"log", "check_pack"}


RULES_OF_2026 = (
    b'{"name":"x","kernel":"ln","cdf_kernel":"none","quantile_kernel":"none","reference":"none","consensus":"median",'
    b'"consensus_weights":"equal","sampling":"time","day_minutes":0,"period":"scheduled","clock":"claimed",'
    b'"scale":"plain","total":"sum","least_coverage":0,"take":"none","rank_by":"total","least_prize":0,'
    b'"bots":"members","scored_only_levels":[],"scored_only_factor":"one","score_consensus":false,'
    b'"best_of_entrant":false,"attested":false,"early_forecasts":true,"least_probability_ppm":1000,'
    b'"least_density_ppm":10000,"open_end_ppm":50000'
)
SPAN = events.NumericRange(lower="0", upper="4", bins=4)
BYTES_OF_EVENTS: list[tuple[events.AnyEvent, bytes]] = [
    (
        events.ForecastMade(at=2, question="q", participant="ada", probabilities=(7, 3)),
        b'{"type":"forecast_made.v1","at":2,"question":"q","participant":"ada","probabilities":[7,3]}',
    ),
    (
        events.ForecastMade(at=2, question="q", participant="ada", cdf=(0, 10)),
        b'{"type":"forecast_made.v1","at":2,"question":"q","participant":"ada","cdf":[0,10]}',
    ),
    (
        events.QuestionOpened(at=1, question="q", kind="numeric", range=SPAN, opens_at=1, closes_at=9),
        (
            b'{"type":"question_opened.v1","at":1,"question":"q","kind":"numeric",'
            b'"range":{"lower":"0","upper":"4","bins":4},"opens_at":1,"closes_at":9}'
        ),
    ),
    (
        events.QuestionAdded(at=1, contest="k", question="q", weight=5),
        b'{"type":"question_added.v1","at":1,"contest":"k","question":"q","weight":5}',
    ),
    (
        events.ParticipantEnrolled(at=1, contest="k", participant="ada"),
        b'{"type":"participant_enrolled.v1","at":1,"contest":"k","participant":"ada"}',
    ),
    (
        events.ContestOpened(at=1, contest="k", rules=RuleSet(name="x", kernel="ln"), pool=5, payable_unit=1),
        b'{"type":"contest_opened.v1","at":1,"contest":"k","rules":' + RULES_OF_2026 + b'},"pool":5,"payable_unit":1}',
    ),
    (
        events.ContestOpened(
            at=1,
            contest="k",
            rules=RuleSet(name="x", kernel="ln", density_floor="added", greatest_density_ppm=35 * 10**6),
            payable_unit=1,
        ),
        b'{"type":"contest_opened.v1","at":1,"contest":"k","rules":'
        + RULES_OF_2026
        + b',"density_floor":"added","greatest_density_ppm":35000000},"payable_unit":1}',
    ),
    (
        events.PrizePaid(at=1, contest="k", participant="ada", amount=5),
        b'{"type":"prize_paid.v1","at":1,"contest":"k","participant":"ada","amount":5}',
    ),
    (
        events.QuestionResolved(at=9, question="q", outcome=-1, known_at=9, payouts=(5, 5)),
        b'{"type":"question_resolved.v1","at":9,"question":"q","outcome":-1,"known_at":9,"payouts":[5,5]}',
    ),
    (
        events.QuestionAnnulled(at=9, question="q", reason="", policy="refund_cost"),
        b'{"type":"question_annulled.v1","at":9,"question":"q","reason":""}',
    ),
    (
        events.PricesQuoted(
            at=3, source="feed", quoted_at=2, quotes=(events.Quote(question="q", prices=(4, None, 0)),)
        ),
        (
            b'{"type":"prices_quoted.v1","at":3,"source":"feed","quoted_at":2,'
            b'"quotes":[{"question":"q","prices":[4,null,0]}]}'
        ),
    ),
    (
        events.DecisionRecorded(
            at=3, contest="k", participant="ada", period=1, attempt=1, action="HOLD", reasoning="Wait."
        ),
        (
            b'{"type":"decision_recorded.v1","at":3,"contest":"k","participant":"ada","period":1,"attempt":1,'
            b'"action":"HOLD","reasoning":"Wait."}'
        ),
    ),
    (
        events.TradesVoided(
            at=9, contest="k", participant="ada", question="q", outcome=1, position=2, shares=0, cost=0, amount=-7
        ),
        (
            b'{"type":"trades_voided.v1","at":9,"contest":"k","participant":"ada","question":"q","outcome":1,'
            b'"position":2,"shares":0,"cost":0,"amount":-7}'
        ),
    ),
]


@pytest.mark.parametrize(("event", "body"), BYTES_OF_EVENTS, ids=lambda value: type(value).__name__)
def test_an_event_has_only_fields_that_differ_from_their_defaults(event: events.AnyEvent, body: bytes) -> None:
    """A field added later leaves the bytes of events that do not use it unchanged; the bytes were put together by hand.

    A rule set has all its first fields, and fields added later if they differ from their defaults.
    """
    [row] = sealed(event)
    assert b'"event":' + body + b',"digest":' in row


@given(st.lists(st.tuples(EVENTS, PROVENANCE), max_size=4))
def test_what_is_sealed_is_unsealed(rows: list[tuple[events.AnyEvent, Provenance | UnsetType]]) -> None:
    """Every event is read back with its position, time and command, and with where the command came from."""
    happened, said = [event for event, _ in rows], [provenance for _, provenance in rows]
    unsealed = log.unseal(sealed(*happened, said=said), START)
    assert [recorded.event for recorded in unsealed] == happened
    assert [recorded.provenance for recorded in unsealed] == said
    assert [recorded.position for recorded in unsealed] == list(range(1, len(happened) + 1))
    assert [recorded.recorded_at for recorded in unsealed] == [NOW + n for n in range(1, len(happened) + 1)]
    assert [recorded.command_id for recorded in unsealed] == [f"c{n}" for n in range(1, len(happened) + 1)]


@given(EVENTS, PROVENANCE)
def test_the_bytes_are_canonical(event: events.AnyEvent, provenance: Provenance | UnsetType) -> None:
    """A row that is decoded and sealed again has the same bytes; they have no float."""
    [row] = sealed(event, said=[provenance])
    [recorded] = log.unseal([row], START)
    assert log.seal(msgspec.structs.replace(recorded, digest="")) == (row, recorded.digest)
    json.loads(row, parse_float=lambda text: pytest.fail(f"a float in the log: {text}"))


def test_every_event_has_a_stored_name_with_a_version() -> None:
    """A stored name has no Python path, is used once, and never changes."""
    tags = [kind.__struct_config__.tag for kind in TYPES]
    assert sorted(tags) == [
        "call_failed.v1",
        "cash_deposited.v1",
        "cash_granted.v1",
        "cash_withdrawn.v1",
        "contest_finalized.v1",
        "contest_opened.v1",
        "decision_defaulted.v1",
        "decision_malformed.v1",
        "decision_recorded.v1",
        "forecast_made.v1",
        "forecast_withdrawn.v1",
        "forecasts_retracted.v1",
        "leg_refused.v1",
        "outcomes_changed.v1",
        "participant_enrolled.v1",
        "participant_excluded.v1",
        "participant_renamed.v1",
        "position_refunded.v1",
        "position_settled.v1",
        "prices_quoted.v1",
        "prize_paid.v1",
        "question_added.v1",
        "question_amended.v1",
        "question_annulled.v1",
        "question_closed.v1",
        "question_opened.v1",
        "question_rescheduled.v1",
        "question_resolved.v1",
        "resolution_revoked.v1",
        "settlement_reversed.v1",
        "shares_bought.v1",
        "shares_sold.v1",
        "text_kept.v1",
        "trade_recorded.v1",
        "trades_voided.v1",
        "version_required.v1",
    ], "a new event adds its stored name here; one that is here never changes"


def test_an_event_does_not_change_once_it_has_happened() -> None:
    """The row and the event in it are frozen."""
    held = [
        events.NumericRange,
        events.Attestation,
        events.StatedPoints,
        events.StatedShares,
        events.Quote,
        events.Bet,
        events.Sale,
        RuleSet,
        Trading,
    ]
    for kind in [*TYPES, *held, Recorded]:
        assert kind.__struct_config__.frozen


def damaged(rows: list[bytes], before: Checkpoint = START) -> int:
    """Return the position at which unsealing stops."""
    with pytest.raises(Corrupt) as caught:
        log.unseal(rows, before)
    assert str(caught.value).startswith(f"log position {caught.value.position}: ")
    return caught.value.position


BYTES = [*b'0 1a",{}[]:\\', 0, 0x0A, 0x7F, 0xFF]
STEP = 2 if LONG == 1 else 1  # in a short run, each offset has half of them


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_change_of_a_single_byte_is_found_at_its_row(place: int) -> None:
    """At every offset, the lowest and highest bit are flipped, and the byte is replaced by characters of JSON."""
    row = THREE[place]
    for offset, byte in enumerate(row):
        for other in {byte ^ 1, byte ^ 0x80, *BYTES[offset % STEP :: STEP]} - {byte}:
            rows = [*THREE]
            rows[place] = row[:offset] + bytes([other]) + row[offset + 1 :]
            assert damaged(rows) == place + 1, rows[place]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_byte_lost_or_added_is_found_at_its_row(place: int) -> None:
    """White space counts too, because the bytes are canonical."""
    row = THREE[place]
    for offset in range(len(row) + 1):
        for other in [row[:offset], row[:offset] + row[offset + 1 :], row[:offset] + b" " + row[offset:]]:
            if other != row:
                assert damaged([*THREE[:place], other, *THREE[place + 1 :]]) == place + 1, other


def test_rows_missing_swapped_or_repeated_are_found() -> None:
    """The first row in a wrong place is named."""
    one, two, three = THREE
    assert damaged([two, three]) == 1
    assert damaged([one, three]) == 2
    assert damaged([two, one, three]) == 1
    assert damaged([one, three, two]) == 2
    assert damaged([one, one, two]) == 2
    assert damaged([one, two, two]) == 3
    assert damaged([one, two, three, three]) == 4
    assert damaged([one, two, three, one]) == 4
    assert damaged([one, b"", two]) == 2
    assert damaged([b""]) == 1


def test_a_row_of_two_joined_records_is_found_at_its_row() -> None:
    """A row holds one record: two in one row, or one in two, are no log, even if the bytes in sequence are the same."""
    one, two, three = THREE
    assert damaged([one + b"," + two, three]) == 1
    assert damaged([one, two + b"," + three]) == 2
    assert damaged([one, two + three]) == 2
    assert damaged([one, two + b"\n" + three]) == 2
    assert damaged([one, b"[" + two + b"]", three]) == 2


def test_a_record_cut_in_two_rows_is_found_at_the_first() -> None:
    """The record may be cut at any of its commas, and two other records may be joined to keep the number of rows."""
    one, two, three = THREE
    cuts = [offset for offset, byte in enumerate(two) if byte == ord(",")]
    for cut in cuts:
        assert damaged([one, two[:cut], two[cut + 1 :], three]) == 2
        assert damaged([one + b"," + two[:cut], two[cut + 1 :], three]) == 1
        assert damaged([two[:cut], two[cut + 1 :], one + b"," + three]) == 1


def test_the_first_of_two_damages_is_named() -> None:
    """The first damage is named even if its row can be decoded and the second cannot."""
    one, two, _ = THREE
    flipped = one.replace(b'"at":1', b'"at":2')
    assert flipped != one
    assert damaged([flipped, two, b"{"]) == 1
    assert damaged([one, two.replace(b"ada", b"bob"), b"{"]) == 2
    assert damaged([one, one, b"{"]) == 2


def test_a_log_that_goes_on_from_another_checkpoint_is_found() -> None:
    """A checkpoint is a position and a digest, and the next row must follow both."""
    one, two, three = THREE
    first = Checkpoint(1, json.loads(one)["digest"])
    assert [recorded.position for recorded in log.unseal([two, three], first)] == [2, 3]
    assert damaged([two, three], Checkpoint(1, GENESIS)) == 2
    assert damaged([three], first) == 2
    assert damaged([two], Checkpoint(2, first.digest)) == 3
    assert damaged([one], first) == 2


def test_another_history_from_the_same_start_is_another_chain() -> None:
    """A row that was replaced and resealed is found at the row after it, which has the digest of the old row."""
    changed = resealed(THREE[0], lambda fields: fields["event"].update(question="p"))
    assert [recorded.position for recorded in log.unseal([changed], START)] == [1]
    assert damaged([changed, *THREE[1:]]) == 2


def retype(fields: dict[str, Any]) -> None:
    """Return a row with an event type of a later version."""
    fields["event"]["type"] = "forecast_made.v2"


FOREIGN: dict[str, Callable[[dict[str, Any]], None]] = {
    "unknown tag": retype,
    "no tag": lambda fields: fields["event"].pop("type"),
    "unknown field of the event": lambda fields: fields["event"].update(comment="x"),
    "unknown field of the row": lambda fields: fields.update(comment="x"),
    "missing field of the event": lambda fields: fields["event"].pop("participant"),
    "missing field of the row": lambda fields: fields.pop("recorded_at"),
    "text for a number": lambda fields: fields["event"].update(at="2"),
    "float": lambda fields: fields["event"].update(at=2.5),
    "number for a text": lambda fields: fields["event"].update(question=7),
    "null": lambda fields: fields["event"].update(question=None),
    "event of another shape": lambda fields: fields.update(event=[]),
    "no event": lambda fields: fields.pop("event"),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_row_of_another_schema_stops_the_reader_though_its_digest_holds(
    change: Callable[[dict[str, Any]], None],
) -> None:
    """Unknown tags, unknown fields and wrong types are never skipped, and never replaced by defaults."""
    one, two, three = THREE
    assert damaged([one, resealed(two, change), three]) == 2


DECLARED = sealed(
    events.QuestionOpened(
        at=1,
        question="q",
        kind="numeric",
        range=events.NumericRange(lower="0", upper="4", levels=(5 * 10**8,)),
        opens_at=1,
        closes_at=9,
    ),
    events.ForecastMade(
        at=2, question="q", participant="ada", quantiles=(3,), attestation=events.Attestation(note="by hand")
    ),
    events.ContestOpened(at=2, contest="k", rules=PRESETS["peer-2024-03"], payable_unit=1),
    events.ContestOpened(at=2, contest="w", rules=PRESETS["arena-v1"], payable_unit=1, starts_at=0),
    events.PricesQuoted(at=3, source="feed", quoted_at=3, quotes=(events.Quote(question="q", prices=(4, 6)),)),
    events.DecisionRecorded(
        at=3,
        contest="w",
        participant="ada",
        period=1,
        attempt=1,
        action="BET",
        bets=(events.Bet(question="q", side="YES", amount=50),),
        reasoning=".",
    ),
)
NESTED: dict[str, tuple[int, Callable[[dict[str, Any]], object]]] = {
    "unknown field of a range": (1, lambda event: event["range"].update(step=1)),
    "level that is no integer": (1, lambda event: event["range"].update(levels=[0.5])),
    "decimals in words": (1, lambda event: event["range"].update(decimals="six")),
    "unknown field of an attestation": (2, lambda event: event["attestation"].update(author="x")),
    "stamp that is no text": (2, lambda event: event["attestation"].update(newest_source=2022)),
    "quantile that is no integer": (2, lambda event: event.update(quantiles=[0.5])),
    "quantiles of another shape": (2, lambda event: event.update(quantiles=[[3]])),
    "unknown field of the rules": (3, lambda event: event["rules"].update(fee=1)),
    "rules of another age": (3, lambda event: event["rules"].update(reference="median")),
    "a limit passed": (3, lambda event: event["rules"].update(day_minutes=1_441)),
    "unknown trading rule": (4, lambda event: event["rules"]["trading"].update(fee=1)),
    "trading rule of another age": (4, lambda event: event["rules"]["trading"].update(legs="any")),
    "a trading limit passed": (4, lambda event: event["rules"]["trading"].update(cap_divisor=0)),
    "start in words": (4, lambda event: event.update(starts_at="Sunday")),
    "price that is no integer": (5, lambda event: event["quotes"][0].update(prices=[0.4, 0.6])),
    "unknown field of a quote": (5, lambda event: event["quotes"][0].update(bid=1)),
    "unknown action": (6, lambda event: event.update(action="SHORT")),
    "action in another case": (6, lambda event: event.update(action="bet")),
    "amount that is no integer": (6, lambda event: event["bets"][0].update(amount=50.5)),
    "unknown field of a bet": (6, lambda event: event["bets"][0].update(limit=1)),
}


@pytest.mark.parametrize(("position", "change"), NESTED.values(), ids=NESTED.keys())
def test_what_an_event_holds_is_of_the_schema_too(position: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Ranges, attestations and rule sets are read as strictly as the event around them."""
    rows = [*DECLARED]
    rows[position - 1] = resealed(rows[position - 1], lambda fields: change(fields["event"]))
    assert damaged(rows) == position


@pytest.mark.parametrize("row", [b"null", b"{}", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b'{"event":' * 100_000])
def test_a_row_that_is_not_a_record_is_found(row: bytes) -> None:
    """Any bytes give Corrupt, and no other exception."""
    assert damaged([THREE[0], row, THREE[2]]) == 2


@given(st.binary(max_size=60), st.integers(0, 2))
def test_a_row_of_any_other_bytes_is_found(row: bytes, place: int) -> None:
    """Random bytes in place of a row are found."""
    assert damaged([*THREE[:place], row, *THREE[place + 1 :]]) == place + 1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pages_follow_one_another_as_one_log(size: int) -> None:
    """The size of the pages does not matter; damage is named by its position in the log, not in the page."""
    rows = sealed(*[events.QuestionClosed(at=n, question="q") for n in range(7)])
    pages = [rows[start : start + size] for start in range(0, len(rows), size)]
    assert [recorded.position for page in log.unseal_pages(iter(pages)) for recorded in page] == [1, 2, 3, 4, 5, 6, 7]
    pages[-1][-1] = pages[-1][-1].replace(b'"at":6', b'"at":5')
    with pytest.raises(Corrupt, match="log position 7: "):
        list(log.unseal_pages(iter(pages)))


def test_an_empty_log_is_sound() -> None:
    """A log without rows has no events, and its digest is GENESIS."""
    assert log.unseal([], START) == []
    assert list(log.unseal_pages(iter([]))) == []
    assert Checkpoint(0, "0" * 64) == START


def test_a_fingerprint_tells_contents_apart() -> None:
    """A fingerprint is 128 bits of SHA-256 in hexadecimal; the digest of no bytes is well known."""
    assert log.fingerprint(b"") == "e3b0c44298fc1c149afbf4c8996fb924"
    assert log.fingerprint(b"a") != log.fingerprint(b"b")
