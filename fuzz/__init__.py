"""Fuzzers: random and hostile input for everything that takes input from outside.  See README.md in this folder."""
