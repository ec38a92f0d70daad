//! The names that JMS has for header fields, and their types: a comparison with another type can
//! never be true, and is refused.

/// The known type of a value before any message is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Number,
    String,
    /// The message decides.
    Any,
}

/// The only field with a known set of values.
pub(crate) const DELIVERY_MODE: &str = "JMSDeliveryMode";

/// Its values.
const DELIVERY_MODES: [&str; 2] = ["PERSISTENT", "NON_PERSISTENT"];

/// True if a name is one that only JMS may give: those of properties do not begin so, but for
/// `JMSX` and `JMS_`.
pub(crate) fn is_of_jms(name: &str) -> bool {
    name.strip_prefix("JMS").is_some_and(|rest| !rest.starts_with(['X', '_']))
}

/// The type of a field or property of this name; `None`: there is no such field.
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

/// True if a message may be sent in the mode of this name.
pub(crate) fn is_delivery_mode(text: &str) -> bool {
    DELIVERY_MODES.contains(&text)
}
