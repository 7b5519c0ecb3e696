"""Every table: its columns, its key, how it is built and how it is divided."""
