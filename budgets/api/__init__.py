"""The spend journal's addresses for programs."""
