"""All benchmarks but the one that builds SimGrid, one after another: python -m bench."""

from __future__ import annotations

from bench import best, demo, deploy, flow, large, overhead, planning, replay, start

if __name__ == "__main__":
    start.main()
    overhead.main()
    planning.main("heft")
    best.main(10.0)
    large.main()
    replay.main()
    flow.main()
    demo.main()
    deploy.main()
