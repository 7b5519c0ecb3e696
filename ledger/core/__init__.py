"""Numbers, instants and errors: exact arithmetic, the units at the edge, and how an error is reported."""
