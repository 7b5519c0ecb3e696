"""Tables and their exact numbers: wide integers, estimates, time lines, schemas, Arrow."""
