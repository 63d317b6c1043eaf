"""How much one caller may use, and all together."""
