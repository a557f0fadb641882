"""`python -m tests.matrix` walks every item with every disturbance at every place; with an item's
name only that one; with `--case "step 1 draining: rows"` one case, here, with its history."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.matrix.definition import names, read
from tests.matrix.walk import Walked, replay, walked


def _every(name: str) -> tuple[str, Walked, float]:
    began = time.monotonic()
    return name, walked(read(name), every=True), time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("item", nargs="*", help=f"of {', '.join(names())}")
    parser.add_argument("--case", help="one case of the item, by the name that its failure has")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.case:
        replay(read(args.item[0]), args.case)
        return 0
    cases = failed = 0
    with ProcessPoolExecutor(args.workers) as pool:
        for name, found, took_s in pool.map(_every, args.item or names()):
            cases += found.cases
            failed += len(found.wrong)
            print(f"{name}: {found.cases} cases, {took_s:.1f} s", flush=True)
            for case, words in found.wrong.items():
                print(f'---- replay with: python -m tests.matrix {name} --case "{case}"\n{words}')
    print(f"{cases - failed} of {cases} cases hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
