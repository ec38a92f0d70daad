//! Engine and journal joined: one turn.
