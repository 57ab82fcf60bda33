"""The catalog for programs, under `/api/v1/catalog/` (docs/api.md)."""
