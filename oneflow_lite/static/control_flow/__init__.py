"""`cond`, `switch_case`, `while_loop`: an op each, over sub-blocks that hold what users wrote."""
