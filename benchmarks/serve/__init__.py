"""Shared code of the benchmarks of the running service."""
