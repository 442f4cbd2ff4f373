"""The page that a person opens after a run: one file that needs no network."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lab import units
from lab.results import LinkRecord, TransferRecord

_TEMPLATES = Path(__file__).resolve().parent


def write_report(
    path: Path,
    *,
    title: str,
    transfers: Sequence[TransferRecord],
    links: Sequence[LinkRecord],
    picture: Path,
    configuration: Mapping[str, object],
    files: Mapping[str, str],
) -> None:
    """files: name in the results folder -> what it holds."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"rate": units.format_rate, "size": units.format_bytes}
    page = environment.get_template("report.html.j2").render(
        title=title,
        transfers=transfers,
        links=sorted(links, key=lambda link: -link.load),
        picture=base64.b64encode(picture.read_bytes()).decode(),
        configuration=configuration,
        files=files,
        all_equal=all(transfer.sha256_equal for transfer in transfers),
        fastest=max((transfer.goodput_bps for transfer in transfers), default=0.0),
    )
    path.write_text(page)
