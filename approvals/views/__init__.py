"""Pages where people decide."""
