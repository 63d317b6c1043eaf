"""Nanny's outside world: HQ's installations, and leave from a CMS."""
