"""Commands from the rows of a CSV, Parquet or .xlsx file, as a map describes its columns."""
