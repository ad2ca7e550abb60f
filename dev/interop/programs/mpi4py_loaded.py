"""mpi4py with the library that it finds, which is loaded and not initialized; then nothing, until somebody ends it."""

import signal

import mpi4py

mpi4py.rc.initialize = False
from mpi4py import MPI

signal.pause()
