"""Rule sets: how a contest turns forecasts into scores, takes and prizes, as data."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Ppm = Annotated[int, Meta(ge=1, le=500_000)]


class RuleSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One contest's rules, recorded whole when it opens, so that no later edit of a preset changes it.

    kernel: the logarithm of the score, "ln" or "log2"; the take raises the same base.
    reference: what a forecast is compared with; "median" is that of all standing forecasts, one's own included.
    take: "coverage_power" is coverage x base^score.
    early_forecasts: whether a forecast made before the opening stands from the opening on.
    least_probability_ppm: what a smaller probability of an outcome, or of an open end, counts as, in 1e-6.
    least_density_ppm: likewise for a bin inside a numeric range, in 1e-6 of the uniform density.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    kernel: Literal["ln", "log2"]
    reference: Literal["median"] = "median"
    take: Literal["coverage_power"] = "coverage_power"
    early_forecasts: bool = True
    least_probability_ppm: Ppm = 1_000
    least_density_ppm: Ppm = 10_000


# Seed 000_b8319c7b2812d652, "A Simple Scenario" to "Tournament Scoring"; before April 2022 the logarithm was base 2
# ("we are now using the natural logarithm (instead of the logarithm base 2)"). The least probability and density are
# those of seed 001_b2c35092a74bcfce, "What is the Baseline score?": 0.1% and a uniform 0.01.
PRESETS: dict[str, RuleSet] = {
    "relative-2021-11": RuleSet(name="relative-2021-11", kernel="log2"),
    "relative-2022-04": RuleSet(name="relative-2022-04", kernel="ln"),
}
