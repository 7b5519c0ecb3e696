"""Every kind of number that can be taken apart, what names one, and the function that does so."""

from os import PathLike, fspath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecast_ledger.replay.explain.explain_scores import Explained
    from forecast_ledger.replay.reading.replay import AsOf, Watch

_OF_BOARDS = ("contest", "participant")
NUMBERS = {  # the kind -> the ids that name one
    "score": ("contest", "question", "participant"),
    "take": _OF_BOARDS,
    "prize": _OF_BOARDS,
    "rank": _OF_BOARDS,
    "balance": _OF_BOARDS,
}


def explain(  # noqa: PLR0913 - what has a default is named
    log: str | PathLike[str],
    number: str,
    *key: str,
    name: str = "main",
    as_of: "AsOf" = None,
    watch: "Watch" = lambda _: None,
    model: str | PathLike[str] | None = None,
    every_part: bool = False,
) -> "Explained":
    """Take a published number apart, down to the events it stands on; its parts add up to it exactly.

    number: one of NUMBERS. key: the ids that name it. log, name, as_of, watch: as of `replay`. model: of a score, the
    path of a read model of the log, so that only the rows that the score depends on are read. every_part: of a score,
    each of its parts, not one row a forecast.

    Raises, first that applies: KeyError (no such kind of number), ValueError (too few or too many ids), what reading a
    log raises, Refused (nothing in the log has that key).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, explain, open
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     found = explain(f"{folder}/season.db", "score", "plain", "olympics-2021", "A")
    >>> found.number["score"], [part["points"] for part in found.parts]
    ('-0.330438960', ['-0.330438960', '0.000000000'])
    """
    from forecast_ledger.replay.explain import explain_boards, explain_scores  # noqa: PLC0415 - late: they import NumPy

    if len(key) != len(NUMBERS[number]):
        raise ValueError(f"a {number} is named by {', '.join(NUMBERS[number])}; {len(key)} ids were given")
    source = explain_scores.Source(fspath(log), name, as_of, watch, None if model is None else fspath(model))
    if number == "score":
        return explain_scores.score(source, *key, every_part=every_part)
    explained: Explained = getattr(explain_boards, number)(source, *key)
    return explained
