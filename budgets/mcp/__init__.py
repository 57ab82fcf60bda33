"""The bounded MCP server of the journal: `oz0-budget`, over stdio. It needs no studio's database."""
