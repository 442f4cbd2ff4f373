"""Wire formats and shared codes, generated from p4src/include/{headers,codes}.p4 (see docs/wire.md).

`python -m wire.generate` writes wire.h, names.h, codes.py and layers.py; icrc.py and rocev2.py are written by hand.
"""
