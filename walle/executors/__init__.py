"""How work on a machine is done: Redfish, programs, webhooks, DNS updates."""
