"""The catalogue of the tables that add up money, and the functions that build them."""

from forecast_ledger.projections.catalogue.schemas import CONTEST, Projection
from forecast_ledger.projections.core.column_values import Column
from forecast_ledger.projections.tables import account_tables

MONEY: dict[str, Projection] = {
    "trial_balance": Projection(
        1,
        "the balance of each account of the journal by contest; the balances of a contest add up to 0",
        ("contest", "account"),
        (
            CONTEST,
            Column("account", "id", "an account of the journal, over all its owners"),
            Column("postings", "count", "number of its rows in the journal"),
            Column("added", "fine_money", "sum of the amounts above 0"),
            Column("taken", "fine_money", "sum of the amounts below 0, without their sign"),
            Column("balance", "fine_money", "added less taken"),
        ),
        account_tables.trial_balance_values,
        reads=("accounts", "contests"),
        division="contests",
        on_request=True,
        exported=True,
    ),
}
