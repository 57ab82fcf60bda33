"""The fault lab: many calls side by side, each with its own fault, and what must hold after every one."""
