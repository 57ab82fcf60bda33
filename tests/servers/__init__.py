"""MCP servers that tests start as processes: one that behaves, on the SDK, and one that does not, written by hand."""
