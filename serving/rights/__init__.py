"""Who may do what: decided from words alone."""
