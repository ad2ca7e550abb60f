"""mpi4py with the library that it finds, loaded but not initialized; then waits to be killed."""

import signal

import mpi4py

mpi4py.rc.initialize = False
from mpi4py import MPI

signal.pause()
