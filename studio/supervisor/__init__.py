"""One process that starts the others, restarts what dies, and ends them all in order."""
