"""Processes: started, limited, written down, stopped."""
