"""What a study does when it is asked to stop."""

import os
import signal

import pytest

from weft.study.runner import stops_like_ctrl_c


@pytest.mark.parametrize("of_ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_it_stops_on_sigterm_even_where_ctrl_c_is_ignored(of_ctrl_c: signal.Handlers) -> None:
    """A shell without job control ignores SIGINT in what it starts in the background."""
    before = signal.signal(signal.SIGINT, of_ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt), stops_like_ctrl_c():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, before)
