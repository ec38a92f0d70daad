use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::*;

const BULK_BYTES_MAX: usize = 100_000;

/// Reads bytes that arrive in pieces of that size: gives the words of each command, and how it
/// ended.
fn read(bytes: &[u8], size: usize) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let mut reader = Reader::new(BULK_BYTES_MAX, COMMAND_BYTES_MAX);
    let mut input = InputBuffer::new();
    let mut commands = Vec::new();
    for piece in bytes.chunks(size) {
        input.append(piece);
        loop {
            match reader.read(&mut input) {
                Ok(Progress::Whole) => {
                    let words = reader.take_words();
                    commands.push(words.from(0).map(<[u8]>::to_vec).collect());
                    reader.give_back(words);
                }
                Ok(_) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

fn check(bytes: &[u8], expected: &[&[&str]], error: Option<ProtocolError>) {
    let words = |command: &&[&str]| command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let expected: Vec<Vec<Vec<u8>>> = expected.iter().map(words).collect();
    for size in [1, 2, 3, 5, 8, 13, usize::MAX] {
        let read = read(bytes, size);
        assert_eq!(read, (expected.clone(), error), "{} by {size}", bytes.escape_ascii());
    }
}

#[test]
fn arrays_of_bulk_strings_are_commands() {
    check(b"*1\r\n$4\r\nPING\r\n", &[&["PING"]], None);
    check(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n", &[&["GET", ""], &["x"]], None);
    check(b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", &[&["GET", "a\r\nb"]], None);
    check(b"*0\r\n*-1\r\n", &[&[], &[]], None);
    check(b"*1\r\n$2\r\nab--*1\r\n$1--c\r\n", &[&["ab"]], Some(ProtocolError::InvalidLength));
    check(b"*02\r\n", &[], Some(ProtocolError::InvalidCount));
}

#[test]
fn lines_are_commands() {
    check(b"PING\r\nset a \"b c\"\n\r\n", &[&["PING"], &["set", "a", "b c"], &[]], None);
}

#[test]
fn malformed_commands_are_told_apart() {
    use ProtocolError::*;
    let cases: [(&[u8], ProtocolError); 13] = [
        (b"*x\r\n", InvalidCount),
        (b"*\r\n", InvalidCount),
        (b"*1048577\r\n", InvalidCount),
        (b"*99999999999999999999\r\n", InvalidCount),
        (b"*1\r\nPING\r\n", ExpectedBulk { found: b'P' }),
        (b"*1\r\n\r\n", ExpectedBulk { found: b'\r' }),
        (b"*1\r\n$x\r\n", InvalidLength),
        (b"*1\r\n$-1\r\n", InvalidLength),
        (b"*1\r\n$100001\r\n", InvalidLength),
        (b"\"a\r\n", UnbalancedQuotes),
        (&[b'x'; LINE_BYTES_MAX + 1], LongInline),
        (&[b'*'; LINE_BYTES_MAX + 1], LongCount),
        (&[&b"*1\r\n$"[..], &[b'1'; LINE_BYTES_MAX]].concat(), LongLength),
    ];
    for (bytes, error) in cases {
        for size in [997, usize::MAX] {
            assert_eq!(read(bytes, size), (vec![], Some(error)), "{error:?} by {size}");
        }
    }
}

#[test]
fn memory_follows_received_bytes() {
    let mut reader = Reader::new(usize::MAX, COMMAND_BYTES_MAX);
    let mut input = InputBuffer::new();
    input.append(b"*1000000\r\n$1000000000\r\nxyz");
    assert_eq!(reader.read(&mut input), Ok(Progress::NeedMore));
    assert!(input.is_empty() && reader.is_within());
    assert!(reader.held_bytes() < 100);
}

#[test]
fn command_has_a_total_limit() {
    let mut reader = Reader::new(COMMAND_BYTES_MAX, COMMAND_BYTES_MAX);
    let mut input = InputBuffer::new();
    let word = vec![b'x'; COMMAND_BYTES_MAX / 4];
    let header = alloc::format!("${}\r\n", word.len());
    input.append(b"*5\r\n");
    for _ in 0..3 {
        input.append(&[header.as_bytes(), &word, b"\r\n"].concat());
        assert_eq!(reader.read(&mut input), Ok(Progress::NeedMore));
    }
    input.append(&[header.as_bytes(), &word, b"\r\n"].concat());
    assert_eq!(reader.read(&mut input), Err(ProtocolError::LargeCommand));
}

#[test]
fn take_alike_accepts_another_last_word() {
    let one = b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1\r\na\r\n";
    let cases: [(&[u8], Option<&[u8]>); 8] = [
        (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$2\r\nbc\r\n", Some(b"bc")),
        (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1\r\nb\r\nPING\r\n", Some(b"b")),
        (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$2\r\nbc\r", None),
        (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$999\r\n", None),
        (b"*3\r\n$5\r\nLPUSH\r\n$1\r\nm\r\n$1\r\nb\r\n", None),
        (b"*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\nb\r\n", None),
        (b"*4\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1\r\nb\r\n$1\r\nc\r\n", None),
        (b"", None),
    ];
    for (next, expected) in cases {
        let (mut reader, mut input) = (Reader::new(1_000, COMMAND_BYTES_MAX), InputBuffer::new());
        input.append(one);
        input.append(next);
        assert_eq!(reader.read(&mut input), Ok(Progress::Whole));
        let before = input.len();
        let word = reader.take_alike(&mut input, |word| Some(word.to_vec()));
        assert_eq!(word.as_deref(), expected, "{}", next.escape_ascii());
        assert_eq!(input.len() == before, expected.is_none(), "it is taken whole or not at all");
    }
}

#[test]
fn take_alike_leaves_unwanted_command() {
    let (mut reader, mut input) = (Reader::new(1_000, COMMAND_BYTES_MAX), InputBuffer::new());
    input.append(&b"*2\r\n$4\r\nRPOP\r\n$1\r\nl\r\n".repeat(2));
    assert_eq!(reader.read(&mut input), Ok(Progress::Whole));
    assert!(reader.sees_alike());
    assert_eq!(reader.take_alike(&mut input, |_| None::<()>), None);
    assert_eq!(reader.read(&mut input), Ok(Progress::Whole));
    assert!(!reader.sees_alike(), "nothing stands behind it");
    input.append(b"$1\r\nl\r\n");
    assert_eq!(reader.take_alike(&mut input, |word| Some(word.len())), None);
}

#[test]
fn stranger_sends_small_commands_only() {
    let read = |bytes: &[u8]| {
        let mut reader = Reader::new(BULK_BYTES_MAX, COMMAND_BYTES_MAX);
        reader.set_stranger(true);
        let mut input = InputBuffer::new();
        input.append(bytes);
        reader.read(&mut input)
    };
    let word =
        |bytes: usize| [format!("${bytes}\r\n").as_bytes(), &vec![b'x'; bytes], b"\r\n"].concat();
    let command = |words: usize, bytes: usize| {
        [format!("*{words}\r\n").into_bytes(), word(bytes).repeat(words)].concat()
    };
    assert_eq!(read(&command(10, 16_384)), Ok(Progress::Whole));
    assert_eq!(read(&command(11, 1)), Err(ProtocolError::StrangerCount));
    assert_eq!(read(&command(1, 16_385)), Err(ProtocolError::StrangerLength));
    assert_eq!(read(b"*11\r\n"), Err(ProtocolError::StrangerCount));
}

#[test]
fn debug_hides_words() {
    let mut reader = Reader::new(BULK_BYTES_MAX, COMMAND_BYTES_MAX);
    let mut input = InputBuffer::new();
    for command in [&b"*3\r\n$4\r\nAUTH\r\n$1\r\na\r\n$6\r\nsecret\r\n"[..], b"*2\r\n$6\r\nsecr"] {
        input.append(command);
        while reader.read(&mut input) == Ok(Progress::GoOn) {}
        assert!(!format!("{reader:?}").contains("115, 101, 99"), "{reader:?}");
    }
}
