"""The kinds of numbers that can be explained, their keys, and the function that explains one."""

from collections.abc import Callable
from os import PathLike, fspath
from typing import TYPE_CHECKING

from forecast_ledger.ledger.core.arguments import checked

if TYPE_CHECKING:
    from forecast_ledger.replay.explain.explain_scores import Explanation
    from forecast_ledger.replay.reading.log import AsOf

_BOARD_KEY = ("contest", "participant")
NUMBERS = {  # kind -> the ids that are its key
    "score": ("contest", "question", "participant"),
    "take": _BOARD_KEY,
    "prize": _BOARD_KEY,
    "rank": _BOARD_KEY,
    "interval": _BOARD_KEY,
    "pair": (*_BOARD_KEY, "other"),
    "adjusted": _BOARD_KEY,
    "balance": _BOARD_KEY,
}


@checked("name", "as_of")
def explain(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    number: str,
    *key: str,
    name: str = "main",
    as_of: "AsOf" = None,
    on_progress: Callable[[int], None] = lambda _: None,
    model: str | PathLike[str] | None = None,
    every_part: bool = False,
) -> "Explanation":
    """Explain a published number: the parts that add up to it exactly, its rule, and the events that it depends on.

    number: one of NUMBERS. key: the ids of its key. log, name, as_of, on_progress: as in `replay`. model: for a score,
    the path of a read model of the log, so that only the rows that the score depends on are read. every_part: for a
    score, one row for each part instead of one for each forecast.

    Raises, first that applies: KeyError (no such kind of number), ValueError (too few or too many ids), the errors of
    reading a log, Refused (nothing in the log has that key).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, explain, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     explained = explain(f"{folder}/season.db", "score", "plain", "olympics-2021", "A")
    >>> explained.number["score"], [part["points"] for part in explained.parts]
    ('-0.330438960', ['-0.330438960', '0.000000000'])
    """
    from forecast_ledger.replay.explain import explain_boards, explain_intervals, explain_scores  # noqa: PLC0415 - late
    from forecast_ledger.replay.reading.log import Log  # noqa: PLC0415 - late too
    from forecast_ledger.replay.readmodel import log_index  # noqa: PLC0415 - late too

    if len(key) != len(NUMBERS[number]):
        raise ValueError(f"the key of a {number} is {', '.join(NUMBERS[number])}; {len(key)} ids were given")
    source = Log(log, name, as_of, on_progress)
    if number == "score":
        pages: explain_scores.Pages | None = None
        if model is not None:
            contest, question, _ = key
            query = log_index.IndexQuery(fspath(model), question, contest)
            pages = lambda store, cut: log_index.indexed_pages(store, query, cut)  # noqa: E731
        return explain_scores.score(source, *key, pages=pages, every_part=every_part)
    modules = {"interval": explain_intervals, "pair": explain_intervals}
    explanation: Explanation = getattr(modules.get(number, explain_boards), number)(source, *key)
    return explanation
