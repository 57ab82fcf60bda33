"""What waits for people, for programs: read only, since no program decides (RULES A5)."""
