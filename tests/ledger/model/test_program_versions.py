"""Tests of versions: which of two is older, and what is none."""

import pytest

from forecast_ledger.ledger.model import program_versions as version

# In the order in which the packaging standard lists them in "Summary of permitted suffixes"; epochs are the greatest.
ORDER = [
    *("1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2"),
    *("1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0.post456.dev34", "1.0.post456"),
    *("1.0.15", "1.1.dev1", "1.9", "1.10", "1!0.1"),
]


def test_versions_are_in_the_order_of_the_packaging_standard() -> None:
    """Each is older than those after it; zeros at the end of a release change nothing."""
    for place, one in enumerate(ORDER):
        assert [version.is_older(one, other) for other in ORDER] == [place < n for n in range(len(ORDER))], one
    assert (
        version.version_key("1.0")
        == version.version_key("1")
        == version.version_key("1.0.0")
        != version.version_key("0")
    )


@pytest.mark.parametrize(
    "text", ["", "1.", "v1", "01", "1.0.0-1", "1.0alpha1", "1.0+local", "1\n", "\u0661", "1" * 201]
)
def test_what_is_no_version_in_normal_form_is_none(text: str) -> None:
    """A program whose version is unknown counts as older than any."""
    assert version.version_key(text) is None
    assert version.is_older("unknown", "0.0.1")
