"""Answers that stay encoded: split, merged and joined as bytes."""
