"""Tables and their exact numbers: wide integers, fractions computed late, powers, estimates, Arrow."""
