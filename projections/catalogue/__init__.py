"""The catalogue of tables: columns, key, builder and division of each."""
