"""How large a file from other people may be."""

from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES

MANIFEST_BYTES = 2**20  # largest manifest
MAP_BYTES = 2**20  # largest map for CSV
ROW_BYTES = MAX_ROW_BYTES  # largest row of a log or table, as written
