"""The tables, by subject: schema, builder and row of each, the results that they share, and the catalogue of all."""
