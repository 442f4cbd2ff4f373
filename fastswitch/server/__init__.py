"""P4Runtime v1 server over engine switches.

service      gRPC methods                       arbitration  who may write: election ids and roles
device       one switch: pipeline, write, read  program      P4Info + JSON + shared object, checked together
schema       P4Info by id, with codecs          codec        bytestrings
tables, profiles, arrays, pre, value_sets       the entities
packetio, digests, idle                         what a switch sends by itself
"""

from fastswitch.server.device import Device
from fastswitch.server.service import P4RuntimeServer, Tls

__all__ = ["Device", "P4RuntimeServer", "Tls"]
