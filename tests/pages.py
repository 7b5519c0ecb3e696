"""Write the pages of the reference: `python -m tests.pages`."""

from forecast_ledger.replay.reference import topics
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "reference"


def written() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    made = [topics.contents(), *map(topics.page, topics.TOPICS)]
    return {f"{page.topic}.md": page.as_markdown() for page in made}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
