"""A job on emulated hosts: work.py OUTPUT SECONDS RESOURCES [INPUT...].

HOSTS in the environment has the hosts and speeds, LOCKS a folder. The job runs on the host that is among its resources,
or else on the fastest that is free; it waits while the host has a job, and takes SECONDS / speed.
"""

import fcntl
import os
import sys
import time
from pathlib import Path


def take(hosts, folder):
    """Wait until one of these hosts is free, and take it; the file is its lock."""
    while True:
        for host in hosts:
            lock = (folder / host).open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return host, lock
            except OSError:
                lock.close()
        time.sleep(0.005)


def main(output, seconds, resources, *inputs):
    speeds = {name: float(speed) for name, speed in (h.split("=") for h in os.environ["HOSTS"].split(","))}
    folder = Path(os.environ["LOCKS"])
    wanted = [host for host in speeds if host in resources.split()]
    host, lock = take(wanted or sorted(speeds, key=lambda h: -speeds[h]), folder)
    began = time.time()
    time.sleep(float(seconds) / speeds[host])
    text = "".join(Path(file).read_text() for file in inputs)
    Path(output).write_text(f"{Path(output).stem}{'(' + text + ')' if text else ''}")
    with (folder / "log").open("a") as log:
        log.write(f"{output}\t{host}\t{began}\t{time.time()}\t{'asked' if wanted else ''}\n")
    lock.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
