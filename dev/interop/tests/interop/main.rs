//! Foreign programs on our server and our library: one folder per subject, one binary, so that it is linked once.

mod control;
mod hostile;
mod hosts;
mod launch;
mod libraries;
mod mpi;
mod packages;
mod site;
mod streams;
mod tools;
