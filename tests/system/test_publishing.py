"""What the repository's host runs and shows: workflows, templates, and the metadata of what is published."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.page_runner import blocks
from tests.support.paths import ROOT

HOST = ROOT / ".github"
WORKFLOWS = sorted((HOST / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What the setup of the host runs, besides scripts of this repository.
INSTALLS = 'python -m pip install ".[columnar,report,sheets]" hypothesis pytest pytest-xdist'
# Options and commands that GNU has, and macOS or a small shell does not.
GNU = re.compile(
    r"\bsed (?:-\w+ )*-i|\bcp [^|]*--|\bhead -c -|\bdate -d|\bsha256sum|\b(?:seq|tac|mktemp|readlink -f)\b"
    r"| --lines=|/dev/std"
)


def steps(workflow: Path) -> list[str]:
    """The commands of a workflow, each on one line."""
    return re.findall(r"(?m)^ +- run: (.*)$", workflow.read_text(encoding="utf-8"))


def test_every_step_of_a_workflow_is_a_script_of_the_repository() -> None:
    """So that whatever the host runs can be run here; a step has one line."""
    text = "".join(workflow.read_text(encoding="utf-8") for workflow in WORKFLOWS)
    assert len(re.findall(r"\brun:", text)) == sum(len(steps(workflow)) for workflow in WORKFLOWS) > 0
    for step in (step for workflow in WORKFLOWS for step in steps(workflow) if step != INSTALLS):
        scripts = re.findall(r"\.ci/[\w.]+", step)
        assert len(scripts) == 1, step
        assert (ROOT / scripts[0]).is_file(), step


def test_all_checks_are_told_what_they_read_of_the_host() -> None:
    """The command sudo keeps only the variables that are named."""
    read = set(re.findall(r"\$\{(GITHUB_\w+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8")))
    [kept] = {names for workflow in WORKFLOWS for step in steps(workflow) for names in re.findall(r"-env=(\S+)", step)}
    assert read
    assert read <= {*kept.split(",")}


def test_the_installed_extras_exist_and_the_scripts_say_what_they_take() -> None:
    """The extras are in the metadata; a tag of another version is refused before anything is built."""
    extras = re.findall(r"\[([\w,]+)\]", INSTALLS)[0].split(",")
    assert {*extras} <= {*PROJECT["optional-dependencies"]}
    done = subprocess.run(
        [sys.executable, ".ci/distributions.py", "--tag", "v0.0.0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"the tag is v0.0.0, and pyproject.toml has the version {PROJECT['version']}\n"


def test_the_part_of_the_tests_for_other_versions_exists() -> None:
    """Every file that the script names is there."""
    named = re.findall(r'"(tests/[\w/.]+)"', (ROOT / ".ci" / "part.py").read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_same_versions_of_python_are_tested_and_named() -> None:
    """The matrix of the workflow, and the classifiers of the metadata."""
    [matrix] = re.findall(r"python: \[(.*)\]", (HOST / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    named = [name.rpartition(" :: ")[2] for name in PROJECT["classifiers"] if "Python :: 3." in name]
    assert re.findall(r"3\.\d+", matrix) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_a_workflow_may_only_read_unless_a_job_says_more() -> None:
    """Each begins with the permission to read, and keeps no password in the checkout."""
    for workflow in WORKFLOWS:
        text = workflow.read_text(encoding="utf-8")
        assert "\npermissions:\n  contents: read\n" in text, workflow
        assert text.count("actions/checkout@") == text.count("persist-credentials: false"), workflow
        assert "secrets." not in text, workflow


def test_commands_on_pages_need_no_gnu() -> None:
    """A reader on macOS, or with another small shell, can type them."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    found = [
        (page.name, line)
        for page in pages
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.word in {"console", "sh"}
        for line in block.text.splitlines()
        if (line.startswith("$ ") or block.word == "sh") and GNU.search(line)
    ]
    assert found == []
