"""The ways in which weft ends on purpose. Commands print the message alone; anything else is a bug."""


class UserError(Exception):
    """Bad input: the message says what, where and what to do. Exit code 2, nothing changed."""


class RunError(Exception):
    """A run that cannot go on, such as a loss that is not a number. Exit code 1, what was saved stays."""


class LostProcess(RunError):
    """Another process of the same run is gone."""


class ToldElsewhere(Exception):
    """Another process of the same run tells why; this one ends without a word. Exit code 1."""


class Interrupted(Exception):
    """A run was asked to stop (Ctrl-C or SIGTERM) and has saved its state. Exit code 130."""
