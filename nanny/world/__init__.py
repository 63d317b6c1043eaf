"""What Nanny sees and does outside of its records: HQ's installations, and leave from a CMS."""
