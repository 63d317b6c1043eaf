"""The pages: each asks its servers at once, and says what is missing instead of failing."""
