"""A server that must not be forked: importing it starts a thread."""

import threading
import time

from ledger_server import main

threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()

if __name__ == "__main__":
    main()
