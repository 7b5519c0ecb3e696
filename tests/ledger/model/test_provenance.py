"""Who asked for a command, why, and on what evidence: what is taken, what is refused, and what rows then say."""

from typing import Any

import pytest
from hypothesis import given as any_of
from hypothesis import settings
from msgspec import UNSET, structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.canonical import canonical_content, normal_content
from forecast_ledger.ledger.model.commands import AnyCommand, Command, Evidence, read
from forecast_ledger.ledger.model.provenance import Provenance, optional_names, provenance_of, with_provenance
from tests.support import given
from tests.support.effort import times
from tests.support.origins import FIELDS, PROVENANCES

SHA = "ab" * 32
PAGE = Evidence(url="https://example.org/gauge")


def closing(**fields: Any) -> AnyCommand:
    """A command whose event has no reason of its own."""
    return structs.replace(given.closing(), **fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"by": "ada"}, '{"by":"ada"}'),
        ({"reason": "late"}, '{"reason":"late"}'),
        ({"evidence": PAGE}, '{"evidence":[{"url":"https://example.org/gauge"}]}'),
        ({"evidence": (PAGE,)}, '{"evidence":[{"url":"https://example.org/gauge"}]}'),
        ({"evidence": [Evidence(sha256=SHA.upper(), text="6")]}, f'{{"evidence":[{{"sha256":"{SHA}","text":"6"}}]}}'),
        ({"reason": "late", "by": "ada", "correlation": "r1", "causation": "c0"}, '{"by":"ada","reason":"late"}'),
    ],
)
def test_who_why_and_evidence_are_content_and_ids_of_the_sender_are_not(fields: dict[str, Any], said: str) -> None:
    """An object before the type, by name: neither what was recorded before there was one, nor what is recorded before a
    command gets another field, has other content later.
    """
    rest = '"close_question","rain",1773532800000000]'  # 15 March 2026, in µs
    assert canonical_content(closing(at=given.day(15))).decode() == f"[{rest}"
    assert canonical_content(closing(at=given.day(15), **fields)).decode() == f"[{said},{rest}"
    assert normal_content(closing(at=given.day(15), **fields)).decode() == f"[2,{said},{rest}"


@pytest.mark.parametrize(
    "fields", [{"by": ""}, {"reason": ""}, {"evidence": ()}, {"evidence": []}, {"correlation": ""}]
)
def test_an_empty_field_is_as_if_it_were_left_out(fields: dict[str, Any]) -> None:
    """So that an empty cell of a table says nothing; the row then says nothing either."""
    assert canonical_content(closing(**fields)) == canonical_content(closing())
    assert normal_content(closing(**fields)) == normal_content(closing())
    assert provenance_of(closing(**fields)) is UNSET


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"by": 7}, "malformed", "by"),
        ({"by": "a" * 1_001}, "text_too_long", "by"),
        ({"by": "a\nb"}, "id_not_plain", "by"),
        ({"by": "\x1b[2J"}, "id_not_plain", "by"),
        ({"by": "a\u202eb"}, "id_not_plain", "by"),
        ({"by": "a\u200bb"}, "id_not_plain", "by"),
        ({"by": "e\u0301"}, "id_not_plain", "by"),
        ({"correlation": "a\tb"}, "id_not_plain", "correlation"),
        ({"causation": ["c1"]}, "malformed", "causation"),
        ({"reason": "a" * 10_001}, "text_too_long", "reason"),
        ({"reason": "\ud800"}, "id_not_plain", "reason"),
        ({"evidence": "https://example.org"}, "malformed", "evidence"),
        ({"evidence": Evidence()}, "malformed", "evidence"),
        ({"evidence": (PAGE, Evidence())}, "malformed", "evidence"),
        ({"evidence": (PAGE,) * 21}, "malformed", "evidence"),
        ({"evidence": Evidence(url="javascript:alert(1)")}, "malformed", "evidence"),
        ({"evidence": Evidence(url="file:///etc/passwd")}, "malformed", "evidence"),
        ({"evidence": Evidence(url="http:///x")}, "malformed", "evidence"),
        ({"evidence": Evidence(url="https://example.org/a b")}, "malformed", "evidence"),
        ({"evidence": Evidence(url="https://example.org/\u202egnp.exe")}, "id_not_plain", "evidence"),
        ({"evidence": Evidence(sha256="ab" * 31)}, "malformed", "evidence"),
        ({"evidence": Evidence(sha256="xy" * 32)}, "malformed", "evidence"),
        ({"evidence": Evidence(text="a" * 10_001)}, "text_too_long", "evidence"),
        ({"evidence": Evidence(text=7)}, "malformed", "evidence"),  # type: ignore[arg-type]
        ({"evidence": Evidence(url="gopher://x", text="a" * 10_001)}, "malformed", "evidence"),
        ({"evidence": Evidence(url="http://" + "a" * 1_000, text="\ud800")}, "id_not_plain", "evidence"),
    ],
)
def test_what_cannot_be_shown_or_is_no_address_is_refused(fields: dict[str, Any], code: str, field: str) -> None:
    """With the field, by the same code for one command and for many; of two faults, the first in precedence."""
    for content in (canonical_content, normal_content):
        with pytest.raises(Refused) as caught:
            content(closing(**fields))
        assert (caught.value.code, caught.value.field.partition(".")[0]) == (code, field)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("url", ["http://a", "HTTPS://EXAMPLE.ORG/x?y#z", "https://例え.jp/é"])
def test_addresses_of_the_web_are_taken_as_they_are_written(url: str) -> None:
    """They are not opened, so nothing else is asked of them."""
    assert provenance_of(closing(evidence=Evidence(url=url))) == Provenance(evidence=(Evidence(url=url),))


def test_every_command_has_the_fields_and_one_reason() -> None:
    """A command that needs a reason, or may amend something for one, has it in its event, and not a second time."""
    kinds = Command.__subclasses__()
    own = {kind.__struct_config__.tag for kind in kinds if "reason" not in optional_names(kind)}
    assert own == {
        "restate_forecasts", "rename_participant", "amend_question", "reschedule_question", "annul_question",
        "cancel_market", "revoke_resolution", "exclude_participant", "deposit_cash", "withdraw_cash",
    }  # fmt: skip
    assert all({"by", "evidence", "correlation", "causation"} <= {*optional_names(kind)} for kind in kinds)
    annulled = structs.replace(given.annulment(), by="ada", reason="the sensor failed")
    assert provenance_of(annulled) == Provenance(by="ada")


def test_a_line_gives_one_piece_of_evidence_or_several() -> None:
    """An object, or an array of them."""
    text = '{"type": "close_question", "question": "rain", "evidence": %s}'
    one, several = (read(text % part) for part in ('{"text": "x"}', '[{"text": "x"}]'))
    assert one.evidence == Evidence(text="x")
    assert normal_content(one) == normal_content(several)
    with pytest.raises(Refused, match="Object contains unknown field `link`"):
        read(text % '{"link": "https://example.org"}')


@any_of(FIELDS)
@settings(max_examples=times(200), deadline=None)
def test_a_command_rebuilt_with_what_its_rows_say_has_the_same_content(fields: dict[str, Any]) -> None:
    """So the digest of a command proves who asked for it, why, and the evidence."""
    command = closing(**fields)
    rebuilt = with_provenance(closing(), provenance_of(command))
    assert normal_content(rebuilt) == normal_content(command)
    assert provenance_of(rebuilt) == provenance_of(command)


@any_of(PROVENANCES)
@settings(max_examples=times(200), deadline=None)
def test_rows_say_what_a_command_of_theirs_would_say(said: Provenance) -> None:
    """Nothing is lost on the way there and back."""
    expected = UNSET if said == Provenance() else said
    assert provenance_of(with_provenance(closing(), said)) == expected
