"""Seeded programs and platforms that benchmarks and tests share."""
