"""Running Programs: passes and analysis once, then one of three runners, driven by the Executor."""
