"""Access to far memory: the costs of a link, and the ways to read through it."""
