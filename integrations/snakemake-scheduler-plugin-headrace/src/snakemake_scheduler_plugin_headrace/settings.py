"""Options of the command line, such as --scheduler-headrace-platform.

Snakemake evaluates the types of the fields: annotations must be objects, and `Optional` is what it knows.
"""

from dataclasses import dataclass, field
from typing import Optional

from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    """What the user says about hosts and run times."""

    platform: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "Platform file (TOML) with the speeds, cores and links of the hosts."},
    )
    hosts: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "Hosts with speeds, instead of a file: 'fast=4,slow=1', or 'fast=4x8' with 8 cores."
        },
    )
    host_resource: Optional[str] = field(  # noqa: UP045
        default="headrace_host",
        metadata={"help": "The resource of a job that gets the name of its host."},
    )
    record: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "Folder of Headrace's record of run times (default: $HEADRACE_HOME, or .headrace)."
        },
    )
    time_limit: Optional[float] = field(  # noqa: UP045
        default=5.0,
        metadata={"help": "Seconds that one selection may take; what has been selected by then is started."},
    )
