"""A stand-in for INS2D: the flow around a body, with nothing but numbers on its command line.

    python flow.py ANGLE REYNOLDS

prints lift and drag as JSON.
"""

import json
import math
import sys


def main(angle: str, reynolds: str) -> None:
    radians, number = math.radians(float(angle)), float(reynolds)
    lift = drag = 0.0
    for _ in range(2000):  # an iteration towards a fixed point
        lift += 0.01 * (2 * math.pi * math.sin(radians) - lift)
        drag += 0.01 * (1.328 / math.sqrt(number) + lift**2 / 20 - drag)
    print(json.dumps({"lift": lift, "drag": drag}))


main(*sys.argv[1:])
