"""One front over several installations of HQ."""
