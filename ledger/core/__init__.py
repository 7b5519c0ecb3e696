"""Numbers, instants and errors: exact arithmetic, units and their conversion, and how an error is reported."""
