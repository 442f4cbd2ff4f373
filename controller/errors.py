"""What can go wrong between a controller and its switches, in words for people."""


class ControllerError(Exception):
    """Anything the controller reports: one sentence that says where, what and why."""


class SwitchUnreachableError(ControllerError):
    """Nothing answers P4Runtime at a switch's address."""


class RefusedError(ControllerError):
    """The switch answered, and refused what was asked."""


class VerifyError(ControllerError):
    """A switch holds other entries than those that were written."""


class EntryTextError(ControllerError):
    """A match, an action or a value that people wrote cannot be understood."""
