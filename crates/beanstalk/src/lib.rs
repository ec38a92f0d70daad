//! The beanstalkd protocol: codec and session.
