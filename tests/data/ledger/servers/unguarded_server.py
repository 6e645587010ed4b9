"""A server that must not be forked: importing it would serve."""

from ledger_server import main

main()
