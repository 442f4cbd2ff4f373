"""Runs cases of p4c's simple test framework (STF) on any P4Runtime switch that serves BMv2's test port.

syntax: text to statements; names, mapping: statements to P4Runtime; device: gRPC; switches: processes; compare;
cases: which files; run: a case from program to outcome.
"""
