"""Running Programs: passes and analysis once, then one of three runners, driven by the Executor.

It imports `static/lazy`, `static/fusion`, `profiler` and the rooms below. `flow.static`,
`flow.compile`, control flow and ONNX run Programs with it.
"""
