"""What the spend journal decides, as pure functions of facts."""
