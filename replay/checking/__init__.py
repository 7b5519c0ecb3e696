"""Check the rows of a log: one after the other, in parts side by side, or by the columns of segments."""
