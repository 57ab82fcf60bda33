"""Deliberate breaks of the product, each a patch, and what catches it."""
