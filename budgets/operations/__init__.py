"""What changes the spend journal, one verb group a file."""
