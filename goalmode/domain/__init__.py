"""Values only: no I/O, frozen, standard library."""
