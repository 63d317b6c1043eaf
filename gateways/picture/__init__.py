"""What a gateway knows of the services it publishes, and how well."""
