"""How far memory is reached: what a link costs, and the ways to read through it."""
