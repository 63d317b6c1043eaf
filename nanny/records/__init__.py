"""What Nanny stores, and how events change it. Pure."""
