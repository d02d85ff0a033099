"""What all tests start from."""

import signal

# A run that a script has put in the background ignores interrupts, and so would its children; the
# tests of interrupts need them.
signal.signal(signal.SIGINT, signal.default_int_handler)
