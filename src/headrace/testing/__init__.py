"""Support for tests: conformance suites and seeded cases, for your own planners and back ends too.

>>> from headrace.testing.generate import random_platform, random_program
>>> import headrace as hr
>>> program, platform = random_program(seed=1, tasks=5), random_platform(seed=1, network="pairs", hosts=3)
>>> hr.check(program, platform, hr.plan(program, platform, "heft"))
[]
"""

from headrace.testing.conformance import check_backend, check_planner, check_scheduler
from headrace.testing.generate import cases, random_platform, random_program

__all__ = ["cases", "check_backend", "check_planner", "check_scheduler", "random_platform", "random_program"]
