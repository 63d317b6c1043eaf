"""Reports to HQ about each revision, and who sends them."""
