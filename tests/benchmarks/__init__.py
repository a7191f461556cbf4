"""The benchmark suite: ``python -m tests.benchmarks`` measures oneflow_lite against its peers."""
