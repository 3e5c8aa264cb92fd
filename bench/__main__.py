"""All benchmarks but those that need SimGrid or SAGA, one after another: python -m bench."""

from __future__ import annotations

from bench import (
    best,
    carried_out,
    demo,
    deploy,
    exact,
    flow,
    large,
    overhead,
    planning,
    replay,
    rules,
    rules_clash,
    rules_exact,
    start,
    streams,
    sweep,
)

if __name__ == "__main__":
    start.main()
    overhead.main()
    planning.main("heft")
    best.main(10.0)
    exact.main()
    sweep.main()
    large.main()
    replay.main()
    carried_out.main()
    flow.main()
    demo.main()
    deploy.main()
    streams.main()
    rules.check()
    rules_clash.main()
    rules_exact.main(300)
