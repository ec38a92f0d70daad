//! How long the state of a terminus lives, and how messages are distributed (3.5.5 to 3.5.7).

use crate::types::list_reader::ListReader;
use crate::types::reader::Result;

/// The part of a terminus that survives the broker (3.5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminusDurability {
    /// Nothing.
    #[default]
    None,
    /// Its existence and its configuration.
    Configuration,
    /// Its unsettled deliveries as well.
    UnsettledState,
}

/// When a terminus without a link begins to expire (3.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiryPolicy {
    /// Once the link is detached.
    LinkDetach,
    /// Once the session has ended.
    #[default]
    SessionEnd,
    /// Once the connection is closed.
    ConnectionClose,
    /// Never.
    Never,
}

/// The fate of a message that a link has transferred (3.5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionMode {
    /// It leaves the node: a queue's consumers share its messages.
    Move,
    /// It stays there for others: a browser.
    Copy,
}

impl TerminusDurability {
    const ALL: [TerminusDurability; 3] = [Self::None, Self::Configuration, Self::UnsettledState];

    pub(super) fn read(list: &mut ListReader<'_>) -> Result<TerminusDurability> {
        let Some(code) = list.uint()? else { return Ok(Self::default()) };
        let known = Self::ALL.into_iter().find(|durability| durability.code() == code);
        known.ok_or(list.invalid("durable"))
    }

    fn code(self) -> u32 {
        self as u32
    }

    /// The field's value; absent if it is the default.
    pub(super) fn field(self) -> Option<u32> {
        (self != Self::default()).then_some(self.code())
    }
}

impl ExpiryPolicy {
    const ALL: [ExpiryPolicy; 4] =
        [Self::LinkDetach, Self::SessionEnd, Self::ConnectionClose, Self::Never];

    pub(super) fn read(list: &mut ListReader<'_>) -> Result<ExpiryPolicy> {
        let Some(symbol) = list.symbol()? else { return Ok(Self::default()) };
        let known = Self::ALL.into_iter().find(|policy| policy.symbol() == symbol);
        known.ok_or(list.invalid("expiry-policy"))
    }

    fn symbol(self) -> &'static str {
        match self {
            ExpiryPolicy::LinkDetach => "link-detach",
            ExpiryPolicy::SessionEnd => "session-end",
            ExpiryPolicy::ConnectionClose => "connection-close",
            ExpiryPolicy::Never => "never",
        }
    }

    /// The field's value; absent if it is the default.
    pub(super) fn field(self) -> Option<&'static str> {
        (self != Self::default()).then_some(self.symbol())
    }
}

impl DistributionMode {
    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Option<DistributionMode>> {
        match list.symbol()? {
            None => Ok(None),
            Some("move") => Ok(Some(DistributionMode::Move)),
            Some("copy") => Ok(Some(DistributionMode::Copy)),
            Some(_) => Err(list.invalid("distribution-mode")),
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            DistributionMode::Move => "move",
            DistributionMode::Copy => "copy",
        }
    }
}
