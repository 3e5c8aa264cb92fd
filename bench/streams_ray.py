"""One producer and one consumer in Ray, which has a Python of its own: PYTHON bench/streams_ray.py.

For each size and number of buffers on the command line (`1000000x300`), it prints a line of JSON: bytes/s with two
actors, of which the first calls the second with at most four buffers under way, and with a generator whose results
another process takes, four ahead. It imports nothing of headrace.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

CREDITS = 4


def actors(ray: Any, size: int, count: int) -> float:
    """Bytes/s from an actor to another."""

    @ray.remote
    class Consumer:
        def __init__(self) -> None:
            self.total, self.first = 0, 0.0

        def take(self, data: bytes) -> None:
            if not self.first:
                self.first = time.perf_counter()
            else:
                self.total += len(data)
            self.last = time.perf_counter()

        def rate(self) -> float:
            return self.total / (self.last - self.first)

    @ray.remote
    class Producer:
        def send(self, consumer: Any) -> None:
            data, under_way = bytes(size), []
            for _ in range(count):
                if len(under_way) == CREDITS:
                    _, under_way = ray.wait(under_way, num_returns=1)
                under_way.append(consumer.take.remote(ray.put(data)))
            ray.get(under_way)

    consumer, producer = Consumer.remote(), Producer.remote()
    ray.get(producer.send.remote(consumer))
    rate: float = ray.get(consumer.rate.remote())
    return rate


def generator(ray: Any, size: int, count: int) -> float:
    """Bytes/s from a task that yields buffers to one that takes them."""

    @ray.remote(num_returns="streaming", _generator_backpressure_num_objects=CREDITS)
    def produce() -> Any:
        data = bytes(size)
        for _ in range(count):
            yield data

    @ray.remote
    def consume() -> float:
        first, total = 0.0, 0
        for reference in produce.remote():
            data = ray.get(reference)
            if not first:
                first = time.perf_counter()
            else:
                total += len(data)
        return total / (time.perf_counter() - first)

    rate: float = ray.get(consume.remote())
    return rate


def main() -> None:
    import ray  # type: ignore[import-not-found, unused-ignore]

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=400_000_000, log_to_driver=False)
    for case in sys.argv[1:]:
        size, count = map(int, case.split("x"))
        rates = [function(ray, size, count) for function in (actors, generator)]
        print(json.dumps({"size": size, "actors": rates[0], "generator": rates[1]}), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
