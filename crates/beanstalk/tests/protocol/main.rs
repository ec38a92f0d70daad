//! The session as a server drives it: scripts, hostile input, and the real beanstalkd beside it.

mod connection;
mod escape;
mod facts;
mod scripts;
