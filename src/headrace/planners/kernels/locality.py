"""How many bytes must be moved for a task, wherever it runs."""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import entry


@entry
def least_traffic(ready, tasks, copies, host_place, held, traffic):
    """For each ready task its input bytes less the most that one host holds: O(copies of the inputs).

    Exactly 0 if a host holds all of them. `held` counts inputs by place; it must be zero and is left so.
    """
    has_host = np.zeros(len(held), np.bool_)
    for host in range(len(host_place)):
        has_host[host_place[host]] = True
    held_bytes = np.zeros(len(held))
    for r in range(len(ready)):
        task = ready[r]
        wanted, total, most = 0, 0.0, 0.0
        complete = False
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            item = tasks.reads[i]
            if tasks.everywhere[item] or tasks.size[item] == 0.0:
                continue
            wanted += 1
            total += tasks.size[item]
            complete = False
            node = copies.head[item]
            while node >= 0:
                place = copies.place[node]
                if has_host[place]:
                    held[place] += 1
                    held_bytes[place] += tasks.size[item]
                    most = max(most, held_bytes[place])
                    complete = complete or held[place] == wanted
                node = copies.next[node]
        for i in range(tasks.read_ptr[task], tasks.read_ptr[task + 1]):
            node = copies.head[tasks.reads[i]]
            while node >= 0:
                held[copies.place[node]] = 0
                held_bytes[copies.place[node]] = 0.0
                node = copies.next[node]
        traffic[r] = 0.0 if complete or wanted == 0 else max(total - most, 1e-300)
