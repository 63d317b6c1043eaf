"""What Nanny stores, and what an event makes of it. Pure."""
