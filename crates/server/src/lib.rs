//! Sockets, threads, clock, signals, configuration and the loop.
