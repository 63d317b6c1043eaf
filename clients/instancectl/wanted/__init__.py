"""The wanted state of an instance: who says it, and the plan that follows from it."""
