"""Talking to collectors of traces."""
