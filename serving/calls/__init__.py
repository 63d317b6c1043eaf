"""The table of methods, and the calls to them."""
