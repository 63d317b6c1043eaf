"""Wall-E: notices broken hosts, asks leave, repairs them, and stops itself when too much is broken at once."""
