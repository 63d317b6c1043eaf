"""What is wanted of an instance, who says so, and what follows from it."""
