"""nanny.v1 as a table of methods."""
