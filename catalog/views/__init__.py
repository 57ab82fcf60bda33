"""Pages of the catalog, and of the connections its remote tools use."""
