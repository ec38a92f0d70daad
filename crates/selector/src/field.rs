//! The names that JMS has for header fields, and what they hold: a comparison with something else
//! can never be true, and is refused.

/// What is known of a value before any message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Number,
    String,
    /// The message decides.
    Any,
}

/// The only field of which it is known what it can hold.
pub(crate) const DELIVERY_MODE: &str = "JMSDeliveryMode";

/// What that holds.
const DELIVERY_MODES: [&str; 2] = ["PERSISTENT", "NON_PERSISTENT"];

/// Whether a name is one that only JMS may give: those of properties do not begin so, but for
/// `JMSX` and `JMS_`.
pub(crate) fn is_of_jms(name: &str) -> bool {
    name.strip_prefix("JMS").is_some_and(|rest| !rest.starts_with(['X', '_']))
}

/// What a field or property of this name holds; `None`: there is no such field.
pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    let kind = match name {
        "JMSPriority" | "JMSTimestamp" | "JMSExpiration" | "JMSDeliveryTime" => Kind::Number,
        "JMSXDeliveryCount" | "JMSXGroupSeq" => Kind::Number,
        "JMSRedelivered" => Kind::Boolean,
        DELIVERY_MODE | "JMSType" | "JMSDestination" | "JMSReplyTo" => Kind::String,
        "JMSXGroupID" | "JMSXUserID" => Kind::String,
        // Others than JMS's clients have numbers there, too.
        "JMSMessageID" | "JMSCorrelationID" => Kind::Any,
        _ if is_of_jms(name) => return None,
        _ => Kind::Any,
    };
    Some(kind)
}

/// Whether a message may be sent in the mode of this name.
pub(crate) fn is_delivery_mode(text: &str) -> bool {
    DELIVERY_MODES.contains(&text)
}
