"""hookonce as the soak runs it: who was killed comes back after a second, however often that was.

The growing pauses of `hookonce worker` would leave nobody to kill, since each worker is killed every few seconds.
"""

from receiver import supervisor
from receiver.cli import main

if __name__ == "__main__":
    supervisor.LONGEST_PAUSE = supervisor.FIRST_PAUSE
    main()
