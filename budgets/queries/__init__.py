"""What is read of the spend journal."""
