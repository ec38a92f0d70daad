//! The only code that opens, writes, preallocates and syncs files.
