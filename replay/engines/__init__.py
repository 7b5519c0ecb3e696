"""Engines: scores of some questions at a time, computed in this process, in others, or on other machines."""
