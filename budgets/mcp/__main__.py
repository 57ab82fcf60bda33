"""`python -m budgets.mcp` is `oz0-budget` from a checkout of it."""

from budgets.mcp.program import main

main()
