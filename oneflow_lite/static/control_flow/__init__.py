"""`cond`, `switch_case`, `while_loop`: an op each, over sub-blocks that hold what users wrote.

It imports `static/runtime`, `static/lazy`, functors and the rooms below. `flow.static.nn` shows it.
"""
