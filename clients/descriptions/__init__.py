"""A service as people describe it: read and checked, split by installation, applied to what HQ holds."""
