import pytest

from lab import doctor
from lab.errors import MissingFeatureError


def missing() -> str:
    raise OSError("not here")


def test_what_is_missing_is_said_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    probes = (
        ("bcc", missing, True, "the XDP NIC cannot be loaded"),
        ("p4c-bm2-ss", missing, False, "no comparison"),
        ("root", lambda: "running as root", True, "nothing works"),
    )
    monkeypatch.setattr(doctor, "_PROBES", probes)
    found = {finding.name: finding for finding in doctor.findings()}
    assert (found["bcc"].ok, found["bcc"].detail) == (False, "not here")
    assert (found["root"].ok, found["root"].detail) == (True, "running as root")
    with pytest.raises(MissingFeatureError) as error:
        doctor.require_laboratory()
    assert str(error.value) == "no bcc: not here (the XDP NIC cannot be loaded)."


def test_optional_things_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PROBES", (("p4c-bm2-ss", missing, False, "no comparison"),))
    doctor.require_laboratory()
