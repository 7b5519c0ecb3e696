"""Orders and distinct keys, against Python's own sort."""

from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.sorting import distinct, stable_order

FAR = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(2**40, 2**40 + 70_000)
KEYS = st.lists(FAR, max_size=40)


@given(KEYS, st.sampled_from([0, 9_000]))
@example([2**63 - 1, -(2**63), 0], 9_000)
@example([2**48, 0, 2**48 - 1, 2**32, 2**16 - 1, 2**16], 9_000)
def test_keys_are_ordered_as_a_stable_sort_does(keys: list[int], more: int) -> None:
    """Few or many keys, of any range, sorted or not, have the order that `sorted` gives."""
    every = keys + [(i * 7_919) % 1_009 for i in range(more)]
    right = sorted(range(len(every)), key=every.__getitem__)
    assert stable_order(int64_array(every)).tolist() == right
    in_order = sorted(every)
    assert stable_order(int64_array(in_order)).tolist() == [*range(len(every))]


@given(KEYS)
@example([0, 40, 3])
@example([-(2**63), 2**63 - 1])
def test_distinct_keys_come_with_the_index_of_each_row(keys: list[int]) -> None:
    """The keys are ascending, and each row's index leads to its key."""
    values, which = distinct(int64_array(keys))
    assert values.tolist() == sorted(set(keys))
    assert [values[place] for place in which.tolist()] == keys
