"""Which paths a flow took, from the flow records of the links."""

from collections.abc import Iterable, Mapping


def paths_taken(edges: Iterable[tuple[str, str]], source: str, destination: str) -> list[tuple[str, ...]]:
    """Every node sequence from source to destination over directed `edges` that carried a flow's packets.

    edges: (from, to) of each link direction with packets of the flow. Where a flow's paths cross, sequences that mix
    two of them cannot be told from real ones and count too. Each path visits a node once.
    """
    successors: dict[str, list[str]] = {}
    for start, end in sorted(set(edges)):
        successors.setdefault(start, []).append(end)
    found: list[tuple[str, ...]] = []
    pending: list[tuple[str, ...]] = [(source,)]
    while pending:
        path = pending.pop()
        if path[-1] == destination:
            found.append(path)
            continue
        pending.extend((*path, after) for after in reversed(successors.get(path[-1], [])) if after not in path)
    return found


def edges_of_flow(
    flows: Mapping[tuple[str, str], Mapping[tuple[str, str, int, int, int], tuple[int, int]]],
    src_ip: str,
    dst_ip: str,
    src_port: int | None = None,
) -> list[tuple[str, str]]:
    """The link directions that saw packets from src_ip to dst_ip.

    flows: (from, to) -> {(src ip, dst ip, protocol, src port, dst port): (packets, bytes)}.
    src_port: only packets with this UDP source port, i.e. of this virtual path.
    """
    return [
        direction
        for direction, records in flows.items()
        if any(
            key[0] == src_ip and key[1] == dst_ip and (src_port is None or key[3] == src_port) and counts[0] > 0
            for key, counts in records.items()
        )
    ]
