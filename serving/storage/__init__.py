"""Where a server meets its store: errors as callers see them, flags, credentials, metrics. Nothing else in `serving`
knows of `store`.
"""
