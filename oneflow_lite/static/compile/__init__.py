"""`flow.compile`: a function is observed as it runs; its Program is replayed under guards."""
