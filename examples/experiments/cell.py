"""A stand-in for MCell: molecules that diffuse in a cell, read from a geometry that all points share.

python cell.py GEOMETRY RATE SEED OUTPUT
"""

import random
import sys


def main(geometry: str, rate: str, seed: str, output: str) -> None:
    with open(geometry) as file:  # noqa: PTH123 - any command-line program
        size, molecules, steps = (int(line.split("=")[1]) for line in file if "=" in line)
    rng = random.Random(int(seed))
    places = [size // 2] * molecules
    bound = 0
    for _ in range(steps):
        for k, place in enumerate(places):
            if place < 0:
                continue
            moved = place + rng.choice((-1, 1))
            if not 0 <= moved < size:  # at the wall: bound with this probability, else reflected
                moved = -1 if rng.random() < float(rate) else place
            places[k] = moved
            bound += moved < 0
    with open(output, "w") as file:  # noqa: PTH123
        file.write(f"{bound / molecules}\n")


main(*sys.argv[1:])
