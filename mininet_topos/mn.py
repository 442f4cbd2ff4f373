"""For Mininet's own command: all topologies as `plait-<name>`, and switches `plait` and `bmv2` with Plait's controller.

    mn --custom mininet_topos/mn.py --topo plait-leafspine,spines=2,leaves=4 --switch plait,program=p4src/spray.p4
    mn --custom mininet_topos/mn.py --topo plait-file,net.json --switch bmv2 --test pingall

`mn` executes this text in a namespace of its own, each of whose names it takes over: `topos` and `switches` add to its
dictionaries, `Mininet` and `findController` stand in for what it would make the network of.  See
`mininet_topos.mn_network`.
"""

import sys
from pathlib import Path

# There is no __file__ here, and `mn` runs in the system's Python.
sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from mininet_topos.mn_network import Mininet, findController, switches, topos  # noqa: E402

__all__ = ["Mininet", "findController", "switches", "topos"]
