"""What samples of questions assume: which are drawn together, and where questions look as if they should be."""

from forecast_ledger.ledger.model.rules import ALONE, TAG, RuleSet
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.dependence import alike_by_day
from forecast_ledger.projections.studies.resampling import Units
from forecast_ledger.projections.tables.catalogue import Projections


def describe_samples(rules: RuleSet, units: Units) -> str:
    """Return what is drawn in samples of questions, and what that assumes."""
    questions = int((units.unit >= 0).sum())
    if units.size == questions and len(units.counts) == 1:
        named = "" if rules.clusters == (ALONE,) else f"; no two have the same {rules.clusters[0].removeprefix(TAG)}"
        return f"{questions:,} questions, each by itself, as if none had anything in common{named}"
    names = (field.removeprefix(TAG) for field in rules.clusters)
    by = [f"{count:,} clusters by {name}" for name, count in zip(names, units.counts, strict=True)]
    return f"{questions:,} questions in {' and '.join(by)}, as if no two clusters had anything in common"


def warn_of_dependence(projections: Projections, name: str) -> str:
    """Warn if the questions of a contest look dependent and none are drawn together; "" if not."""
    contest = projections.facts.contests[name]
    alike = alike_by_day(contest, projections.scored(name))
    if alike is None:
        return ""
    return (
        f"questions that count up to the same day have scores alike: over {alike.days:,} days, the means of "
        f"days vary {float(alike.ratio):,.1f} times as much as if questions had nothing in common. Intervals and ranks "
        "look surer than they are; name what is drawn together in the field `clusters` of the rules, or in "
        "`Replay.study(cluster=…)`"
    )


def sample_notes(projections: Projections, name: str) -> list[str]:
    """Say what the samples of a contest draw, and warn if questions look dependent; [] if no question counts."""
    scored, rules = projections.scored(name), projections.facts.contests[name].opened.rules
    if not (scored.questions.weight > 0).any():
        return []
    drawn = f"samples draw {describe_samples(rules, units_of(rules, scored))}"
    return [drawn, *filter(None, [warn_of_dependence(projections, name)])]
