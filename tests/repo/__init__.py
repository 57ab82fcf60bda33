"""The repository tests itself: names and places, who writes states, what the docs say, which rules are proven.

Each check is a function of a tree's path that returns findings, so it can be turned on a copy with a fault put in.
"""
