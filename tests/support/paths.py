"""Where the checkout and its worked examples are."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "data"
