"""The bars of experiments: python -m bench.experiments mutations|flips|kills|quotes|overhead|merge.

On two quiet cores: mutations 6 minutes, flips 2, kills 25, quotes 6, overhead 1, merge half a minute. `--count` makes
each shorter or longer.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["mutations", "flips", "kills", "quotes", "overhead", "merge"])
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-experiments-") as name:
        folder = Path(name)
        if given.what == "mutations":
            from bench.experiments_mutations import mutations

            print(mutations(folder, given.count or 500, given.seed))
        elif given.what == "flips":
            from bench.experiments_store import flips

            print(flips(folder, given.count or 1000, given.seed))
        elif given.what == "kills":
            from bench.experiments_store import kills

            print(kills(folder, given.count or 200, given.seed))
        elif given.what == "quotes":
            from bench.experiments_quotes import quotes

            print(quotes(folder, given.count or 10, given.seed))
        elif given.what == "overhead":
            from bench.experiments_overhead import overhead

            print(overhead(folder, given.count or 2000))
        else:
            from bench.experiments_overhead import merging

            print(merging(folder, given.count or 100_000))


if __name__ == "__main__":
    main()
