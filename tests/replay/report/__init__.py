"""Tests of replay.report."""
