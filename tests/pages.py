"""Write the pages of the reference, and the table of the benchmarks: `python -m tests.pages`."""

import re
from functools import cache

from forecast_ledger.bench import results
from forecast_ledger.replay.reference import topics
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "reference"


@cache
def written() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    made = [topics.contents(), *map(topics.page, topics.TOPICS)]
    return {f"{page.topic}.md": page.as_markdown() for page in made}


BENCHMARKS = ROOT / "docs" / "benchmarks.md"


def benchmarks() -> str:
    """The text of the page of benchmarks, with the rows of the file that is kept beside it."""
    made = results.table(results.read(BENCHMARKS.with_suffix(".json")))
    return re.sub(r"(?m)^\| measured \|.*\n(?:\|.*\n)*", lambda _: made, BENCHMARKS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    BENCHMARKS.write_text(benchmarks(), encoding="utf-8")
