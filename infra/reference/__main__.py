"""Write the generated blocks of docs/reference anew, or say which of them are stale.

`python -m infra.reference` writes them; `--check` changes nothing and ends with 1 when a page does
not say what the code says. `make test` runs the same check as a unit test.
"""

from __future__ import annotations

import argparse
import sys

from infra.reference.pages import FOLDER, regenerated_pages


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if stale")
    check = parser.parse_args().check
    stale = {
        path: text for path, text in regenerated_pages().items() if path.read_text("utf-8") != text
    }
    for path, text in stale.items():
        print(f"{FOLDER.name}/{path.name}: {'stale' if check else 'written anew'}")
        if not check:
            path.write_text(text, "utf-8")
    if stale and check:
        print("run `python -m infra.reference`", file=sys.stderr)
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
