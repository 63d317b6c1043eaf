"""The recorder: what was known of instances, and when. It follows HQ like any client; nothing depends on it."""
