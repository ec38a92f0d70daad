//! The room that an answer of many parts takes, so that it is made at once. A large one that grows
//! by and by takes up to twice its bytes, for which the client that holds the most is closed.

use model::{Element, Entries, Reply, StreamEntries, StreamReply};

use crate::answer::{bulk_bytes, header_bytes};

/// Bytes of the answer to one command, or to all of a batch; a short answer counts nothing.
pub(crate) fn of_reply(reply: &Reply) -> usize {
    match reply {
        Reply::Elements(elements) if elements.len() > 1 => of_elements(elements),
        Reply::Popped { queue, elements } => {
            header_bytes(2) + bulk_bytes(queue.as_str().len()) + of_elements(elements)
        }
        Reply::Entries(entries) => of_entries(entries),
        Reply::ScoredPopped(popped) => {
            header_bytes(2) + bulk_bytes(popped.name.as_str().len()) + of_entries(&popped.entries)
        }
        Reply::Stream(reply) => of_stream(reply),
        Reply::Scores(scores) => header_bytes(scores.len()) + scores.len() * SCORE_BYTES_MAX,
        Reply::Places(places) => {
            let each = places.iter().map(|place| header_bytes(*place as usize));
            header_bytes(places.len()) + each.sum::<usize>()
        }
        Reply::Values(values) => {
            let shown = values.found.iter().filter_map(|each| each.as_ref().ok()?.as_ref());
            shown.map(|value| bulk_bytes(value.len())).sum()
        }
        Reply::Batch(replies) => {
            header_bytes(replies.len()) + replies.iter().map(of_part).sum::<usize>()
        }
        _ => 0,
    }
}

/// The same of one of a batch, where short answers add up.
fn of_part(reply: &Reply) -> usize {
    match reply {
        Reply::Elements(elements) => of_elements(elements),
        Reply::Value(Some(value)) | Reply::Replaced { old: Some(value), .. } => {
            bulk_bytes(value.len())
        }
        Reply::Names { names, .. } => of_bulks(names.iter().map(|name| name.as_str().len())),
        other => of_reply(other),
    }
}

fn of_elements(elements: &[Element]) -> usize {
    of_bulks(elements.iter().map(|element| element.payload().len()))
}

/// The most that any command tells of them: in pairs, where there are two of each.
fn of_entries(entries: &Entries) -> usize {
    let pairs = entries.len() * header_bytes(2);
    let texts = entries.fields.iter().chain(entries.values.iter());
    let texts = texts.map(|text| bulk_bytes(text.len())).sum::<usize>();
    header_bytes(entries.len() * 2) + pairs + texts + entries.scores.len() * SCORE_BYTES_MAX
}

/// Entries of streams; all else that is told of them is short.
fn of_stream(reply: &StreamReply) -> usize {
    match reply {
        StreamReply::Entries(entries) | StreamReply::Claimed { entries, .. } => {
            of_stream_entries(entries)
        }
        StreamReply::Read(streams) => {
            let each = streams.iter().map(|(name, entries)| {
                header_bytes(2) + bulk_bytes(name.as_str().len()) + of_stream_entries(entries)
            });
            header_bytes(streams.len()) + each.sum::<usize>()
        }
        _ => 0,
    }
}

fn of_stream_entries(entries: &StreamEntries) -> usize {
    let each = header_bytes(2) + bulk_bytes(ID_BYTES_MAX) + header_bytes(usize::MAX);
    let texts = entries.text_count() * bulk_bytes(0) + entries.bytes();
    // The length of a text has a digit more for each power of ten.
    header_bytes(entries.len()) + entries.len() * each + texts + entries.bytes() / 8
}

/// Bytes of the longest id.
const ID_BYTES_MAX: usize = 41;

/// Bytes of the longest score: `-1.7976931348623157e+308`.
const SCORE_BYTES_MAX: usize = bulk_bytes(24);

/// An array of bulk strings of these lengths.
pub(crate) fn of_bulks(lengths: impl ExactSizeIterator<Item = usize>) -> usize {
    header_bytes(lengths.len()) + lengths.map(bulk_bytes).sum::<usize>()
}
