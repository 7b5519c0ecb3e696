"""Integer codes for ids."""


class Codes:
    """Ids numbered 0, 1, 2 … in order of first appearance."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._labels: list[str] = []

    def add(self, text: str) -> int:
        """Return the code of an id; add the id if it is new."""
        return self.codes.setdefault(text, len(self.codes))

    @property
    def labels(self) -> list[str]:
        """The ids, by code."""
        if len(self._labels) != len(self.codes):
            self._labels = list(self.codes)
        return self._labels
