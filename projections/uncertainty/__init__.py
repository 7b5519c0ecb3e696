"""How sure boards are: samples drawn again from a stated seed, intervals of scores, ranks and prizes, sets of ranks."""
