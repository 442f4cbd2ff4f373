"""Topologies as one immutable model, and the Mininet networks that are built from them.

`topology` and the generators need nothing but the standard library; `network` and `nodes` need Mininet and root.
"""
