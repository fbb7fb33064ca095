"""What the benchmarks of the running service share; each file is one thing."""
