"""How many machines an installation needs, and what its worst days look like, from measured costs."""
