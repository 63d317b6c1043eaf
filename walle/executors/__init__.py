"""Ways to work on a machine: Redfish, programs, webhooks, DNS updates."""
