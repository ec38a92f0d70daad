//! Sections for messages that the broker makes: those of other protocols, and those that it
//! annotates. They have to be written in the order of [`super::Section`].

use alloc::vec::Vec;

use crate::encode::{self, MapWriter};
use crate::types::{Value, descriptor};

/// Appends annotations for the next hop (3.2.2). Keys are symbols.
pub fn delivery_annotations(out: &mut Vec<u8>, write: impl FnOnce(&mut MapWriter<'_>)) {
    encode::described(out, descriptor::DELIVERY_ANNOTATIONS);
    encode::map(out, write);
}

/// Appends annotations that stay with the message (3.2.3). Keys are symbols; those that the
/// receiver need not understand begin with `x-opt-`.
pub fn message_annotations(out: &mut Vec<u8>, write: impl FnOnce(&mut MapWriter<'_>)) {
    encode::described(out, descriptor::MESSAGE_ANNOTATIONS);
    encode::map(out, write);
}

/// Appends application properties (3.2.5). Keys are strings, values are no lists, maps or arrays.
pub fn application_properties(out: &mut Vec<u8>, write: impl FnOnce(&mut MapWriter<'_>)) {
    encode::described(out, descriptor::APPLICATION_PROPERTIES);
    encode::map(out, write);
}

/// Appends a data section (3.2.6).
pub fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    data_head(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the head of a data section of `length` bytes, which have to follow.
pub fn data_head(out: &mut Vec<u8>, length: usize) {
    encode::described(out, descriptor::DATA);
    encode::binary_head(out, length);
}

/// Appends a body that is one value (3.2.8).
pub fn value(out: &mut Vec<u8>, value: Value<'_>) {
    encode::described(out, descriptor::AMQP_VALUE);
    encode::value(out, value);
}
