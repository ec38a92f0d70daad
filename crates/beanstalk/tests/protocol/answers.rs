//! Answers as a client reads them.

use client::beanstalkd::Reply;

/// One answer: its line without the end, and the body behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) line: String,
    pub(crate) body: Option<Vec<u8>>,
}

/// Takes the first answer out of a stream, when all of it is there.
pub(crate) fn take(stream: &mut Vec<u8>) -> Option<Answer> {
    let (reply, length) = Reply::parse(stream, usize::MAX).expect("an answer")?;
    let answer = Answer { line: reply.line.to_owned(), body: reply.body.map(<[u8]>::to_vec) };
    stream.drain(..length);
    Some(answer)
}
