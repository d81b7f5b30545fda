"""Remove from package-lock.json what names a host: where packages were downloaded from and who funds them.

npm finds each package by name and version in whichever registry it is configured for, and checks the
`integrity` hash, which stays.
"""

import json
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "package-lock.json"


def main() -> None:
    lock = json.loads(LOCK.read_text())
    for path, package in lock["packages"].items():
        package.pop("resolved", None)
        package.pop("funding", None)
        if path and not package.get("integrity"):
            raise SystemExit(f"package-lock.json: {path} has no integrity hash")
    LOCK.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
