//! The ends of answers.

/// Takes the first whole answer, or message, from the front.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = length(bytes, 0)?;
    let rest = bytes.split_off(length);
    Some(core::mem::replace(bytes, rest))
}

/// How many bytes of these are whole answers, one behind the other.
pub(crate) fn whole(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(end) = length(bytes, at) {
        at = end;
    }
    at
}

/// The end of the answer that begins at `start`, if it has come as a whole.
fn length(bytes: &[u8], start: usize) -> Option<usize> {
    let line = bytes.get(start..)?.windows(2).position(|window| window == b"\r\n")?;
    let behind = start + line + 2;
    let number = || {
        let digits = std::str::from_utf8(&bytes[start + 1..behind - 2]).unwrap();
        digits.parse::<i64>().unwrap_or_else(|_| panic!("{digits:?} is no length"))
    };
    match bytes[start] {
        b'+' | b'-' | b':' | b'_' | b',' | b'#' => Some(behind),
        b'$' | b'=' => match number() {
            -1 => Some(behind),
            length => {
                let end = behind + usize::try_from(length).unwrap() + 2;
                let is_whole = bytes.len() >= end;
                assert!(!is_whole || bytes[end - 2..end] == *b"\r\n", "a bulk string ends");
                is_whole.then_some(end)
            }
        },
        b'*' | b'~' | b'>' => (0..number()).try_fold(behind, |at, _| length(bytes, at)),
        b'%' => (0..2 * number()).try_fold(behind, |at, _| length(bytes, at)),
        other => panic!("no answer begins with {other:?}"),
    }
}

#[test]
fn answers_are_told_apart() {
    let answers: [&[u8]; 8] = [
        b"+OK\r\n",
        b"$-1\r\n",
        b"$4\r\na\r\nb\r\n",
        b"*-1\r\n",
        b"*2\r\n:1\r\n*1\r\n$0\r\n\r\n",
        b"%1\r\n+a\r\n_\r\n",
        b">1\r\n~0\r\n",
        b"-ERR x\r\n",
    ];
    let mut bytes = answers.concat();
    assert_eq!(whole(&bytes), bytes.len());
    for answer in answers {
        assert_eq!(take(&mut bytes).as_deref(), Some(answer));
    }
    assert_eq!(take(&mut bytes), None);
    bytes.extend_from_slice(b":1\r\n*2\r\n:1\r\n$3\r\nab");
    assert_eq!(whole(&bytes), 4);
    assert_eq!(take(&mut bytes).as_deref(), Some(&b":1\r\n"[..]));
    assert_eq!(take(&mut bytes), None);
}
