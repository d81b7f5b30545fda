"""What is wrong with a file of traffic, said so that the next try succeeds."""

from pathlib import Path


class TrafficError(ValueError):
    """A file cannot be read as traffic.

    Args:
        where: the line, or the setting; empty for the whole file.
    """

    def __init__(self, file: Path | str, where: str, found: str, fix: str) -> None:
        place = f"{file}: {where}" if where else str(file)
        super().__init__(f"{place} {found}\n  {fix}")
