"""Nanny's stored records, and how events change them. Pure."""
