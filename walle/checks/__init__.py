"""What says that a host is broken: alerts, reports, and HQ's silent nodes."""
