"""What may be said, and the record that it was said."""

from ledger.errors import Conflict, Corrupt, LedgerError, Refused, Unavailable, Uncertain
from ledger.ledger import Ledger, Receipt

__all__ = ["Conflict", "Corrupt", "Ledger", "LedgerError", "Receipt", "Refused", "Unavailable", "Uncertain"]
