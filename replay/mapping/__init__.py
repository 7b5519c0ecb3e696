"""Commands from the rows of a CSV or Parquet file, as a map describes its columns."""
