"""All benchmarks, one after another: python -m bench."""

from __future__ import annotations

from bench import best, demo, deploy, flow, large, overhead, planning, start

if __name__ == "__main__":
    start.main()
    overhead.main()
    planning.main("heft")
    best.main(10.0)
    large.main()
    flow.main()
    demo.main()
    deploy.main()
