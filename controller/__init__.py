"""P4Runtime controller: a topology and a policy become table entries; and the verbs by which people meet tables.

It knows switches by P4Info and P4Runtime only, so that every P4Runtime switch will do.
"""
