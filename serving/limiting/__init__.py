"""How much one caller may, and all together."""
