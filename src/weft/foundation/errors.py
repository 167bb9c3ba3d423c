"""Expected errors. Commands print their message without a traceback; any other exception is a bug."""


class UserError(Exception):
    """Invalid input: the message says what, where and what to do. Exit code 2, nothing is changed."""


class RunError(Exception):
    """A run that cannot continue, for example because the loss is NaN. Exit code 1, saved files stay."""


class LostProcess(RunError):
    """Another process of the same run has died."""


class ToldElsewhere(Exception):
    """Another process of the same run reports the error; this one exits silently. Exit code 1."""


class Interrupted(Exception):
    """A run received Ctrl-C or SIGTERM and has saved its state. Exit code 130."""
