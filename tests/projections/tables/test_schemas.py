"""What the text of a schema says."""

import pytest

from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables.schemas import schema

TEXT = """
    what each stall
    takes in a day

    contest*
    day*      count  the day, the first is 1
    taken     money  what it takes, before what it
                     has to pay
    question
"""


def test_a_schema_has_the_meaning_the_key_and_the_columns_of_its_text() -> None:
    """Lines that continue are joined, an asterisk marks the key, and a name alone is a column that many tables have."""
    meaning, key, columns = schema(TEXT)
    assert meaning == "what each stall takes in a day"
    assert key == ("contest", "day")
    assert columns == (
        Column("contest", "id", "the contest"),
        Column("day", "count", "the day, the first is 1"),
        Column("taken", "money", "what it takes, before what it has to pay"),
        Column("question", "id", "the question"),
    )


@pytest.mark.parametrize(("line", "error"), [("price", KeyError), ("price  money", TypeError)])
def test_a_column_without_a_meaning_is_an_error(line: str, error: type[Exception]) -> None:
    """A name alone that no other table shares, and a name with a kind alone: found when the module is imported."""
    with pytest.raises(error):
        schema(f"what it is\n\n    contest*\n    {line}\n")
