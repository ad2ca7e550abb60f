"""MPI in an interpreter: loads the library that the first argument names, and waits for the file that the second one names."""

import ctypes
import os
import sys
import time

mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
print(f"rank {os.environ['PMIX_RANK']} has seen the file", flush=True)
