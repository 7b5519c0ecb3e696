"""Cursors: how far each named reader of a ledger has come, in a table beside the logs of a store.

A cursor is held by one reader at a time, until the reader ends or gives no sign for some time, by the database's clock.
"""

TABLE = "ledger_cursors"
# The statements of the table, for every database: `now` is its time, µs since 1970, and a value is written "?".
CREATE = (
    "CREATE TABLE IF NOT EXISTS {table} (ledger TEXT NOT NULL, name TEXT NOT NULL, position BIGINT NOT NULL, "
    "digest TEXT NOT NULL, holder TEXT NOT NULL, held_until BIGINT NOT NULL, PRIMARY KEY (ledger, name))"
)
# Values: ledger, name, position, digest, holder, µs. Returns no row if another reader holds the cursor.
TAKE = (
    "INSERT INTO {table} AS kept (ledger, name, position, digest, holder, held_until) "
    "VALUES (?, ?, ?, ?, ?, {now} + ?) "
    "ON CONFLICT (ledger, name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until "
    "WHERE kept.holder = excluded.holder OR kept.held_until < {now} RETURNING position, digest"
)
_HELD = "WHERE ledger = ? AND name = ? AND holder = ? RETURNING position, digest"
# Values: position, digest, µs, then those of _HELD. None of these returns a row if another reader has taken the cursor.
MOVE = f"UPDATE {{table}} SET position = ?, digest = ?, held_until = {{now}} + ? {_HELD}"  # noqa: S608 - a constant
KEEP = f"UPDATE {{table}} SET held_until = {{now}} + ? {_HELD}"  # noqa: S608
END = f"UPDATE {{table}} SET held_until = 0 {_HELD}"  # noqa: S608
