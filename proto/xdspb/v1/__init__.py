"""xDS v3."""
