"""Jobs and calls for programs, under `/api/v1/` (docs/api.md)."""
