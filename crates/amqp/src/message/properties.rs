//! The properties: fields about a message that the sender sets for good (3.2.4).

use alloc::vec::Vec;

use crate::encode;
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Value, code, descriptor};

/// The sender's fields about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Properties<'a> {
    /// The message's name: a ulong, uuid, binary or string (3.2.11 to 3.2.14).
    pub message_id: Option<Value<'a>>,
    /// The user that made it.
    pub user_id: Option<&'a [u8]>,
    /// The address of the node that it is for.
    pub to: Option<&'a str>,
    /// Its subject; JMS's type.
    pub subject: Option<&'a str>,
    /// The address of the node that answers go to.
    pub reply_to: Option<&'a str>,
    /// The id of the message that it answers: a ulong, uuid, binary or string.
    pub correlation_id: Option<Value<'a>>,
    /// The MIME type of its data.
    pub content_type: Option<&'a str>,
    /// How its data is compressed.
    pub content_encoding: Option<&'a str>,
    /// When it is worth nothing any more; milliseconds since 1970.
    pub absolute_expiry_time: Option<i64>,
    /// When it was made; milliseconds since 1970.
    pub creation_time: Option<i64>,
    /// The group that it belongs to.
    pub group_id: Option<&'a str>,
    /// Its place in the group.
    pub group_sequence: Option<u32>,
    /// The group that answers belong to.
    pub reply_to_group_id: Option<&'a str>,
}

/// The places of those properties that are looked up alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    MessageId,
    UserId,
    To,
    Subject,
    ReplyTo,
    CorrelationId,
    ContentType,
    AbsoluteExpiryTime = 8,
    CreationTime,
    GroupId,
    GroupSequence,
    ReplyToGroupId,
}

impl<'a> Properties<'a> {
    /// The fields behind the section's descriptor.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Properties<'a>> {
        let mut list = ListReader::new(reader)?;
        let properties = Properties {
            message_id: message_id(&mut list, "message-id")?,
            user_id: list.binary()?,
            to: list.str()?,
            subject: list.str()?,
            reply_to: list.str()?,
            correlation_id: message_id(&mut list, "correlation-id")?,
            content_type: list.symbol()?,
            content_encoding: list.symbol()?,
            absolute_expiry_time: list.timestamp()?,
            creation_time: list.timestamp()?,
            group_id: list.str()?,
            group_sequence: list.uint()?,
            reply_to_group_id: list.str()?,
        };
        list.finish(reader)?;
        Ok(properties)
    }

    /// Passes over the fields, or fails as [`Properties::read`] would.
    pub(super) fn check(reader: &mut Reader<'_>) -> Result<()> {
        let mut list = ListReader::new(reader)?;
        check_message_id(&mut list, "message-id")?;
        list.binary()?;
        list.check_str()?;
        list.check_str()?;
        list.check_str()?;
        check_message_id(&mut list, "correlation-id")?;
        list.check_symbol()?;
        list.check_symbol()?;
        list.timestamp()?;
        list.timestamp()?;
        list.check_str()?;
        list.uint()?;
        list.check_str()?;
        list.finish(reader)
    }

    /// Appends the section.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::PROPERTIES, |list| {
            list.value(self.message_id);
            list.binary(self.user_id);
            list.string(self.to);
            list.string(self.subject);
            list.string(self.reply_to);
            list.value(self.correlation_id);
            list.symbol(self.content_type);
            list.symbol(self.content_encoding);
            list.timestamp(self.absolute_expiry_time);
            list.timestamp(self.creation_time);
            list.string(self.group_id);
            list.uint(self.group_sequence);
            list.string(self.reply_to_group_id);
        });
    }
}

fn message_id<'a>(list: &mut ListReader<'a>, name: &'static str) -> Result<Option<Value<'a>>> {
    let id = list.value()?;
    match id {
        None | Some(Value::Ulong(_) | Value::Uuid(_) | Value::Binary(_) | Value::String(_)) => {
            Ok(id)
        }
        Some(_) => Err(list.invalid(name)),
    }
}

fn check_message_id(list: &mut ListReader<'_>, name: &'static str) -> Result<()> {
    let id = list.field(|reader, code| reader.check_of(code, 0).map(|()| code))?;
    if id.is_none_or(is_message_id) { Ok(()) } else { Err(list.invalid(name)) }
}

/// The constructors of those types.
fn is_message_id(code: u8) -> bool {
    matches!(
        code,
        code::ULONG
            | code::SMALL_ULONG
            | code::ULONG_0
            | code::UUID
            | code::BINARY_8
            | code::BINARY_32
            | code::STRING_8
            | code::STRING_32
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field with each constructor.
    #[test]
    fn check_agrees_with_read() {
        for (place, code) in (0..14_u8).flat_map(|place| (0..=u8::MAX).map(move |it| (place, it))) {
            for tail in [&[2, b'a', b'b'][..], &[1, 0xff, 0, 0, 0, 0, 0, 0], &[]] {
                let mut fields = alloc::vec![code::NULL; usize::from(place)];
                fields.push(code);
                fields.extend_from_slice(tail);
                let size = u8::try_from(fields.len() + 1).unwrap();
                let bytes = [&[code::LIST_8, size, place + 1][..], &fields].concat();
                let (mut checks, mut reads) = (Reader::new(&bytes), Reader::new(&bytes));
                let read = Properties::read(&mut reads).map(drop);
                assert_eq!(Properties::check(&mut checks), read, "{bytes:02x?}");
            }
        }
    }
}
