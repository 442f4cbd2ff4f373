"""PTF tests of the programs in p4src/: one module a program, run by `ptf_tests.runner` on any P4Runtime target."""
