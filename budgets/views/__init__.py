"""The Budgets pages."""
