"""`flow.compile`: record while running, replay behind guards."""
