"""The journal's client: HTTP within bounds, credentials, and what the journal's answers must look like. No database."""
