"""The node against real servers in real processes."""
