"""Replaying a log as of a cut, and printing what follows: tables, events and rules in words."""
