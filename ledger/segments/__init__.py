"""Sealed segments: the rows of a log as Parquet columns, from which they are rebuilt byte for byte."""
