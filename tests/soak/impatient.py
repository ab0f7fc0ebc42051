"""hookonce as the soak runs it: who was killed comes back after a second, however often that was.

The growing pauses of `hookonce worker` would leave nobody to kill, since each worker is killed every few seconds.
"""

from hookonce.receiver.cli import main
from hookonce.receiver.processes import supervisor

if __name__ == "__main__":
    supervisor.MAX_RESTART_DELAY = supervisor.MIN_RESTART_DELAY
    main()
