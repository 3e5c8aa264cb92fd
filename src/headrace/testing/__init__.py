"""For tests: conformance suites and seeded cases, also for planners and back ends of your own."""

from headrace.testing.conformance import check_backend, check_planner, check_scheduler
from headrace.testing.generate import cases, random_platform, random_program

__all__ = ["cases", "check_backend", "check_planner", "check_scheduler", "random_platform", "random_program"]
