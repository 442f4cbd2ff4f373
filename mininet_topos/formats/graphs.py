"""What other programs draw and compute with: Graphviz' DOT and GraphML (yEd, Gephi, networkx, igraph)."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from mininet_topos.quantities import rate_text, time_text
from mininet_topos.topology import Node, Topology

LEAVES_OUT = ""

# GraphML's keys: of a node, of an edge; name -> type.
_NODE_KEYS = {"kind": "string", "layer": "string", "ipv4": "string", "mac": "string", "place": "string"}
_EDGE_KEYS = {"port_a": "int", "port_b": "int", "rate_bps": "long", "delay_ns": "long", "loss": "double"}


def render_dot(topology: Topology) -> str:
    """An undirected graph with a rank for every layer."""
    lines = [f'graph "{topology.name}" {{', " node [fontname=Helvetica, fontsize=10];", " edge [fontsize=7];"]
    layers: dict[str, list[Node]] = {}
    for node in topology.nodes:
        layers.setdefault("" if node.is_host else node.layer, []).append(node)
    for nodes in layers.values():
        lines.append(" { rank=same;")
        lines += [f'  "{n.name}" [shape={"ellipse" if n.is_host else "box"}, tooltip="{_about(n)}"];' for n in nodes]
        lines.append(" }")
    for link in topology.links:
        about = f'tooltip="{rate_text(link.rate_bps)} {time_text(link.delay_ns)}"'
        lines.append(f' "{link.a}" -- "{link.b}" [taillabel={link.port_a}, headlabel={link.port_b}, {about}];')
    return "\n".join(lines) + "\n}\n"


def _about(node: Node) -> str:
    text = ", ".join(filter(None, (node.place or node.layer, node.ipv4)))
    return text.replace("\\", "\\\\").replace('"', '\\"')


def render_graphml(topology: Topology) -> str:
    """Each link is an edge, so that parallel links are distinct; directions mean nothing."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    for domain, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for key, kind in keys.items():
            lines.append(f'<key id="{key}" for="{domain}" attr.name="{key}" attr.type="{kind}"/>')
    lines.append(f"<graph id={quoteattr(topology.name)} edgedefault=\"undirected\">")
    for node in topology.nodes:
        lines.append(f"<node id={quoteattr(node.name)}>{_data(node, _NODE_KEYS)}</node>")
    for number, link in enumerate(topology.links):
        ends = f"source={quoteattr(link.a)} target={quoteattr(link.b)}"
        lines.append(f'<edge id="e{number}" {ends}>{_data(link, _EDGE_KEYS)}</edge>')
    return "\n".join([*lines, "</graph>", "</graphml>"]) + "\n"


def _data(record: object, keys: dict[str, str]) -> str:
    values = {key: getattr(record, key) for key in keys}
    return "".join(f'<data key="{k}">{escape(str(v))}</data>' for k, v in values.items() if v is not None)
