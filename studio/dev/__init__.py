"""`oz0 dev`: a plugin's folder in a studio of its own, loaded anew whenever a file of it is saved (RULES D4)."""
