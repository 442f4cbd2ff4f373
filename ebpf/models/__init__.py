"""Reference models of the NIC's mechanisms in plain Python, from the papers, with unbounded integers."""
