"""Bugs that tests put into HQ to see whether tests/checker finds them. Nothing here is ever part of what is shipped."""
