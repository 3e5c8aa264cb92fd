"""What all tests need."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # In the background of a script an interrupt is ignored, and so it would be in every command that a test
    # starts and interrupts. A handler of one's own does not pass on to them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
