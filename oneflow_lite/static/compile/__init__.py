"""`flow.compile`: a function is observed while it runs, and its Program is replayed under guards."""
