"""Files from other people: what a Parquet file says of its size is looked at before anything in it is read."""

from io import BytesIO
from types import SimpleNamespace

import pytest

from forecast_ledger.ledger.core.regular_files import check_packed


def metadata(*sizes: int) -> SimpleNamespace:
    """What pyarrow says of a file whose row groups have these sizes when they are unpacked; of no column."""
    groups = [SimpleNamespace(total_byte_size=size) for size in sizes]
    return SimpleNamespace(num_row_groups=len(groups), row_group=groups.__getitem__)


def test_a_file_may_unpack_to_a_hundred_times_its_size() -> None:
    """Or to 256 MiB a row group. Columns are not looked at: where their metadata is damaged, pyarrow 26 aborts."""
    file = BytesIO(bytes(10 * 2**20))
    check_packed(metadata(), file)
    check_packed(metadata(2**28, 1_000 * 2**20), file)
    with pytest.raises(ValueError, match=r"row group 2: 1048576001 bytes, uncompressed"):
        check_packed(metadata(5, 1_000 * 2**20 + 1), file)
    check_packed(metadata(2**28), BytesIO(b"few"))
    with pytest.raises(ValueError, match="row group 1: 268435457 bytes"):
        check_packed(metadata(2**28 + 1), BytesIO(b"few"))
