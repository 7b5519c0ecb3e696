"""The reference, printed from the tables that the code uses: help by topic, pages under docs, schemas."""
