"""The check that the rule set of a contest can score a question."""

from decimal import Decimal

from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import ABSOLUTES, RuleSet

_SQUEEZABLE = 1_000  # outcomes of 0.001 each
_FURTHEST = 500_000_000  # of two values whose difference is squared: 64 bits hold the square
_POINT = (500_000_000,)  # 1e-9: the level of a point forecast


def why_unscorable(span: NumericRange | None, rules: RuleSet, outcomes: int = 0) -> str:
    """Return why a rule set cannot score a question with this range or number of named outcomes; empty if it can.

    >>> why_unscorable(None, RuleSet(name="x", cdf_kernel="ln"))
    'its rule set has no kernel for named outcomes'
    """
    if span is None:
        if rules.consensus == "squeezed" and outcomes >= _SQUEEZABLE:
            return f"its rule set's consensus squeezed is limited to fewer than {_SQUEEZABLE} outcomes"
        return "its rule set has no kernel for named outcomes" * (rules.kernel == "none" and rules.trading is None)
    if not span.measures:
        return "its rule set has no cdf_kernel" * (rules.cdf_kernel == "none")
    return _why_unscorable_quantiles(span, rules)


def _why_unscorable_quantiles(span: NumericRange, rules: RuleSet) -> str:
    if rules.quantile_kernel == "squared" and span.samples != 1:
        return "the squared error needs a range of one sample"
    if rules.quantile_kernel == "squared" and span.furthest > _FURTHEST:
        return f"the squared error needs values at most {_FURTHEST:,} apart: close the range, or give more decimals"
    if rules.quantile_kernel in ABSOLUTES and span.levels != _POINT:
        return "the absolute error needs 0.5 as the only level"
    if rules.quantile_kernel == "absolute" and (span.open_lower or span.open_upper):
        return "the absolute error needs a range closed at both ends; absolute_clipped does not"
    if rules.transform == "log_shifted" and (span.open_lower or Decimal(span.lower) < 0):
        return "ln(x + 1) needs a range that is closed below, at 0 or above"
    return "its rule set has no quantile_kernel" * (rules.quantile_kernel == "none")
