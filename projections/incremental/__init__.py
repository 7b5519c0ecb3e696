"""What new events change: the parts of tables that are worked out again."""
