"""Batches of commands, and what a writer holds of its log to decide them."""
