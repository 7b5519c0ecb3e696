"""The builders of tables: the values of each table, column by column, and the results that they share."""
