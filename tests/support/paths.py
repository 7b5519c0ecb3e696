"""Paths of the checkout, its worked examples and its source files."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "data"
SOURCES = sorted(path for top in ("ledger", "projections", "replay") for path in (ROOT / top).rglob("*.py"))
