"""Stands in for `plait-switch --fabric FILE`: says `ready` and answers the control socket, but forwards nothing."""

import json
import os
import socket
import sys
import time
from pathlib import Path


def main() -> None:
    config = json.loads(Path(sys.argv[-1]).read_text())
    behaviour = sys.argv[1]
    if behaviour == "fail":
        sys.exit("cannot bind 127.0.0.1:9559: address already in use")
    print("loading", flush=True)
    if behaviour == "hang":
        time.sleep(100)
    path = Path(config["control"])
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    print("ready", flush=True)
    path.with_suffix(".lab").write_text(os.environ.get("PLAIT_LAB", ""))
    while True:
        connection, _ = server.accept()
        with connection:
            request = json.loads(connection.makefile("rb").readline())
            with path.with_suffix(".requests").open("a") as log:
                log.write(json.dumps(request) + "\n")
            connection.sendall(b"{}\n")


main()
