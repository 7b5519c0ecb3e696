"""The documentation is true: every block of every page runs, every link leads somewhere, every page is listed."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Corrupt, LedgerError
from tests.support.page_runner import blocks, command_folder, reader, run
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
GUIDES = sorted(path for path in DOCS.glob("*.md") if any(blocks(path.read_text(encoding="utf-8"))))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
LARGEST_README = 10 * 1024  # bytes


def anchors(page: str) -> set[str]:
    r"""The anchors of a page: its headings in lower case, without punctuation, with hyphens for spaces.

    >>> sorted(anchors("# One, two\n\n## `verify` says"))
    ['one-two', 'verify-says']
    """
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def tables(path: Path) -> dict[str, list[str]]:
    """A page's tables: the rows of each by its header line."""
    headed_tables = re.findall(r"(?m)^(\|.*\|)\n\|[ \-|]+\|\n((?:\|.*\|\n)*)", path.read_text(encoding="utf-8"))
    return {header: rows.splitlines() for header, rows in headed_tables}


@pytest.mark.parametrize("page", [ROOT / "README.md", *GUIDES], ids=lambda path: path.stem)
def test_every_block_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """From top to bottom in one folder that looks like the clone: commands, examples, files."""
    run(page, reader(tmp_path / "reader"), command_folder(tmp_path / "bin"))


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one\n```\n",
        "```console\n$ echo one; echo two\no...\n```\n",
        "```console\n$ echo one; echo two; echo three\no...\nthree\n```\n",
        "```console\n$ echo one; echo two\n...\none\n```\n",
        "```console\n$ false\n$ echo $?\n0\n```\n",
        "```console\none\n```\n",
        "```python\n>>> 1 + 1\n3\n\n```\n",
        "```toml\na = 1\n```\n",
        "Save this:\n\n```toml a.toml\na = 1\n```\n",
    ],
    ids=[
        "other text",
        "text that is not shown",
        "a line more than the ellipsis",
        "a line swallowed by an ellipsis",
        "a line more than after any lines",
        "another exit code",
        "no command",
        "another value",
        "not run",
        "not named",
    ],
)
def test_a_block_that_is_not_true_is_found(text: str, tmp_path: Path) -> None:
    """Wrong or missing output, another value, and a block that no step uses are errors."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError):
        run(page, tmp_path, command_folder(tmp_path / "bin"))


def test_an_ellipsis_stands_for_text_within_a_line_and_alone_for_any_lines(tmp_path: Path) -> None:
    """Lines before and after any lines are compared; no line at all is any lines too."""
    page = tmp_path / "page.md"
    text = "```console\n$ echo one; echo two; echo three\no...\n...\nthree\n$ echo four\n...\nf...r\n```\n"
    page.write_text(text, encoding="utf-8")
    run(page, tmp_path, command_folder(tmp_path / "bin"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    """Links within the repository; those to other sites are not followed."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        led = page.parent / name if name else page
        assert led.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(led.read_text(encoding="utf-8")), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """A page names only files of the code, tests and examples that exist, or files that its reader saves elsewhere."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    named = re.findall(r"`((?:ledger|projections|replay|tests|data)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_contents_list_every_page() -> None:
    """The first page of the docs links each page once."""
    contents = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        if page != DOCS / "README.md":
            assert contents.count(f"]({page.relative_to(DOCS)})") == 1, page


def test_the_rooms_are_listed_with_their_purposes() -> None:
    """CONTRIBUTING describes each room by the first words of its `__init__`."""
    rooms = sorted(path for top in ("ledger", "projections", "replay") for path in (ROOT / top).glob("*/__init__.py"))
    expected = [
        f"| `{path.parent.relative_to(ROOT)}` | {ast.get_docstring(ast.parse(path.read_text(encoding='utf-8')))} |"
        for path in rooms
    ]
    assert tables(ROOT / "CONTRIBUTING.md")["| room | purpose |"] == expected


def test_the_readme_is_a_front_page() -> None:
    """The README has at most 10 KB."""
    assert len((ROOT / "README.md").read_bytes()) <= LARGEST_README


def test_the_setup_commands_are_the_ones_that_the_checks_run() -> None:
    """`.ci/run` takes its two set-up commands from the README itself, so they must be there, each once."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in (
        "pip install -q . && .venv/bin/forecast-ledger demo",
        "pip install -q '.[test]' && .venv/bin/pytest",
    ):
        assert readme.count(f"python3 -m venv .venv && .venv/bin/{command}\n") == 1


def test_every_kind_of_error_is_listed() -> None:
    """The page for backends lists each kind of error with its exception."""
    listed = tables(DOCS / "backend.md")["| kind | exception | means | what to do |"]
    kinds = [re.findall("`(.*?)`", row)[:2] for row in listed]
    found = [*LedgerError.__subclasses__(), *Corrupt.__subclasses__()]
    assert sorted(kinds) == sorted([kind.kind, kind.__name__] for kind in found)


def test_every_row_of_the_benchmarks_is_measured() -> None:
    """By its words in the benchmark; and the front page compares by these values."""
    modules = [ROOT / "tests" / "bench.py", *(ROOT / "forecast_ledger" / "bench").glob("*.py")]
    source = "".join(module.read_text(encoding="utf-8") for module in modules)
    rows = [row.strip("| ").split(" | ") for row in tables(DOCS / "benchmarks.md")["| measured | value |"]]
    for label, _ in rows:
        own = re.sub("^(1,000,000 events|SQLite|PostgreSQL), ", "", label)
        for part in re.split(", (?=in memory|on a file)|: ratio to ", re.sub(r" \(aim .*\)$", "", own)):
            assert part in source, label
    values = {value for _, value in rows}
    compared = tables(ROOT / "README.md")["| task | compared with | ours / theirs |"]
    assert [row for row in compared if row.strip("| ").split(" | ")[-1] not in values] == []


def test_version_and_licence_are_the_same_wherever_they_are_written() -> None:
    """The package's metadata, the citation, and the newest entry of the changelog."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"(?m)^## \[(.+?)\]", changelog)
    assert newest is not None
    assert f"\nversion: {project['version']}\n" in citation
    assert newest[1] == project["version"]
    assert f"\nlicense: {project['license']}\n" in citation
    assert "Apache License" in (ROOT / project["license-files"][0]).read_text(encoding="utf-8")
