"""`flow.compile`: calls are observed while they run, and their Programs replayed under guards."""
