//! The records of which frames and snapshots are made: values from bytes, and bytes from values.
//!
//! Decoding is total: any bytes are records or a [`RecordError`]. It copies nothing and allocates
//! nothing. `docs/reference/file-format.md` has the tables of bytes.
#![no_std]

extern crate alloc;

mod codec;
mod collection_records;
mod copies;
mod extension;
mod key_records;
mod policy_record;
mod record;
mod registration;
mod send_id_record;
mod wire;

pub use codec::{
    CHANGED_BYTES_MAX, Link, Records, decode_envelope, describe, encode, encoded_bytes, end_chain,
    place_of, put_envelope, queue_name,
};
pub use collection_records::{CollectionView, FieldsDraft, FieldsView};
pub use copies::{Copies, CopiesDraft};
pub use key_records::{DeadlineView, ExpiredList, ValueView};
pub use policy_record::OwnPolicyView;
pub use record::{
    DeadView, FieldValue, MessageCounters, Place, RecordError, RecordView, Standing,
    StoredEnvelope, StoredState,
};
pub use registration::SubscriptionView;
pub use send_id_record::SendIdView;
pub use wire::{VARINT_BYTES_MAX, put_bytes, texts};
