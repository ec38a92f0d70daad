package dunlin.interop;

/** What a broker of JMS may lack. The names of {@code -Dbroker.lacks} are these. */
enum Feature {
    /** What was delivered to a connection that was lost counts as an attempt. */
    COUNTED_LOSSES,
    /** Dead letters say why, from where, when and after how many attempts. */
    DEAD_LETTER_ANNOTATIONS,
    /** A temporary destination that was deleted is not made anew by who uses its name. */
    FINAL_DELETION,
    /** A shared durable subscription that has consumers cannot be unsubscribed. */
    GUARDED_SHARED_SUBSCRIPTIONS,
    /** A temporary destination is guarded also against who takes its name for an ordinary one's. */
    GUARDED_TEMPORARY_DESTINATIONS,
    /** Selectors know all header fields, quoted names, and what can never match. */
    HEADER_SELECTORS,
    /** A message or transaction that is too large is refused, not taken whatever its size. */
    LIMITS,
    /** In a selector, {@code NOT a = b} is {@code NOT (a = b)}. */
    LOOSE_NOT,
    /** A message to {@code table://NAME} changes a key of a table. */
    TABLES,
}
