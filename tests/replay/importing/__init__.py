"""Tests of the room `replay/importing`."""
