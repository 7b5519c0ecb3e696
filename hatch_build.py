"""The description of the distribution: the README, whose links lead into the repository.

The address of the repository is `Source` in `[project.urls]` of pyproject.toml, and nowhere else. As long as it is not
there, links become text, and pictures are left out: an index of packages has no files of the repository.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:)([^)]+)\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\((?![a-z]+:)[^)]+\)\n\n(?:\*[^*]+\*\n\n)?")  # and what is written below it


def described(readme: str, address: str) -> str:
    """Return the README with absolute links; without an address, with none to files of the repository."""
    if not address:
        return _LINK.sub(lambda link: link[2][1:-1], _PICTURE.sub("", readme))
    places = {"": "blob", "!": "raw"}
    return _LINK.sub(lambda link: f"{link[1]}{link[2]}({address.rstrip('/')}/{places[link[1]]}/HEAD/{link[3]})", readme)


class Description(MetadataHookInterface):
    """Reads the README when the metadata of a distribution are made."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the fields of `[project]`."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = described(readme, metadata.get("urls", {}).get("Source", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
