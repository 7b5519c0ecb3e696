"""The documentation site: what mkdocs builds from the pages of the repository, with one page for each public name.

`mkdocs build --strict` reads this file, because `mkdocs.yml` names it: as hooks of mkdocs, and as an extension of
griffe, which reads the docstrings.
"""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

import forecast_ledger

ROOT = Path(__file__).resolve().parent.parent
FILES = ("*.md", "CITATION.cff", "LICENSE")  # of the repository, in the site, with the folders; links stay inside
FOLDERS = ("data", "docs")
SEARCHED_LAST = ("CHANGELOG", "data/", "docs/notebooks/", "docs/reference/sources")  # answers are seldom there
_FENCE = re.compile(r"(?m)^```(\w+) (\S+)$")
_ITEM = re.compile(r"(?:[-*]|[0-9]+\.) ")
_EXAMPLE = re.compile(r"(?m)^ *>>>.*\n?(?:(?!\n).*\n?)*")


class Examples(griffe.Extension):
    """Makes the examples of docstrings blocks of code in Markdown, which would take `>>>` for a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one docstring."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Return a docstring with its examples, each up to the next empty line, as blocks of code."""
    return _EXAMPLE.sub(lambda block: f"```pycon\n{block[0].rstrip()}\n```\n", docstring)


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a Jupyter notebook as a page: text as it is, code as blocks, each above the text that it gives."""
    page = list[str]()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            page.append(source)
            continue
        language = "bash" if source.startswith("%%bash\n") else "python"
        page.append(f"```{language}\n{source.removeprefix('%%bash').lstrip()}\n```")
        page += ("```text\n" + "".join(output["text"]) + "```" for output in cell["outputs"])
    return "\n\n".join(page) + "\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Gather the pages in a new folder, in the places that they have in the repository, and list the public names."""
    folder = Path(tempfile.mkdtemp(prefix="site-"))
    for path in (path for pattern in FILES for path in ROOT.glob(pattern)):
        shutil.copy(path, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in folder.glob("docs/notebooks/*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        page = f"{notebook_page(notebook)}\n[Download this notebook]({path.name})\n"
        path.with_suffix(".md").write_text(page, encoding="utf-8")
    contents = folder / "docs/README.md"
    contents.write_text(contents.read_text(encoding="utf-8").replace(".ipynb)", ".md)"), encoding="utf-8")
    python = folder / "docs/python"
    python.mkdir()
    for name in forecast_ledger.__all__:
        where = forecast_ledger.replay.__module__ + ".replay" if name == "replay" else f"forecast_ledger.{name}"
        (python / f"{name}.md").write_text(f"---\ntitle: {name}\n---\n\n::: {where}\n", encoding="utf-8")
    index = "# Python\n\n::: forecast_ledger\n    options: {members: false, show_root_heading: false}\n"
    (python / "index.md").write_text(index, encoding="utf-8")
    pages = [f"docs/python/{name}.md" for name in forecast_ledger.__all__]
    next(part for part in config.nav or [] if "Python" in part)["Python"] += pages
    config.docs_dir = str(folder)
    return config


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Write a page, which is for the repository, as the site's Markdown has it; the search finds guides first."""
    if page.file.src_uri.startswith(SEARCHED_LAST):
        page.meta["search"] = {"boost": 0.1}
    return indented(_FENCE.sub(r'```\1 title="\2"', markdown))


def indented(page: str) -> str:
    """Return a page with twice the spaces before each line in a list: parts of an item need four, and not two."""
    lines, in_list, in_fence = list[str](), False, False
    for line in page.splitlines(keepends=True):
        in_fence ^= line.startswith("```")
        starts = not line.startswith((" ", "\n"))
        if _ITEM.match(line):
            in_list = not in_fence
        elif in_fence or (starts and (not lines or lines[-1] == "\n")):
            in_list = False
        spaces = len(line) - len(line.lstrip(" ")) if in_list else 0
        lines.append(" " * spaces + line)
    return "".join(lines)


def on_post_build(config: MkDocsConfig) -> None:
    """Remove the gathered pages."""
    shutil.rmtree(config.docs_dir)
