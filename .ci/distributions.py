"""Build the sdist, the wheel and a bill of materials (CycloneDX) in the folder build, each with tools of its own.

--tag TAG: refuse to, unless the version of pyproject.toml is that of the tag, such as v1.2.3.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "dist"
EXTRAS = "columnar,postgres,remote,report,sheets"  # what a user may run; not Spark, which brings its own tools


def environment(folder: Path, *wanted: str) -> Path:
    """Make an environment with what is wanted; return the path of its Python."""
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def main() -> None:
    """Build all; end with 1 if the tag is that of another version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag")
    tag = parser.parse_args().tag
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag is not None and tag != f"v{version}":
        sys.exit(f"the tag is {tag}, and pyproject.toml has the version {version}")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    tools = environment(ROOT / "build" / "tools", "build>=1.2", "cyclonedx-bom>=7", "twine>=6.1")
    subprocess.run([tools, "-m", "build", "--outdir", OUT, ROOT], check=True)
    made = sorted(OUT.iterdir())
    subprocess.run([tools, "-m", "twine", "check", "--strict", *made], check=True)
    [wheel] = [path for path in made if path.suffix == ".whl"]
    installed = environment(ROOT / "build" / "installed", f"{wheel}[{EXTRAS}]")
    bill: list[str | Path] = [
        "environment",
        "--pyproject",
        ROOT / "pyproject.toml",
        "--output-reproducible",
        "--of",
        "JSON",
    ]
    bill += ["--output-file", ROOT / "build" / "sbom.cdx.json", installed]
    subprocess.run([tools, "-m", "cyclonedx_py", *bill], check=True)


if __name__ == "__main__":
    main()
