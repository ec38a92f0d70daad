//! Answers as a client reads them.

/// One answer: its line without the end, and the body behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) line: String,
    pub(crate) body: Option<Vec<u8>>,
}

/// Takes the first answer out of a stream, when all of it is there.
pub(crate) fn take(stream: &mut Vec<u8>) -> Option<Answer> {
    let end = stream.windows(2).position(|window| window == b"\r\n")?;
    let line = String::from_utf8(stream[..end].to_vec()).expect("answers are text");
    let Some(length) = body_length(&line) else {
        stream.drain(..end + 2);
        return Some(Answer { line, body: None });
    };
    let (start, whole) = (end + 2, end + 2 + length + 2);
    if stream.len() < whole {
        return None;
    }
    let body = stream[start..start + length].to_vec();
    assert_eq!(&stream[start + length..whole], b"\r\n", "a body ends with its line");
    stream.drain(..whole);
    Some(Answer { line, body: Some(body) })
}

fn body_length(line: &str) -> Option<usize> {
    let first = line.split(' ').next()?;
    let last = line.split(' ').next_back()?;
    ["OK", "RESERVED", "FOUND"].contains(&first).then(|| last.parse().expect("a length"))
}
