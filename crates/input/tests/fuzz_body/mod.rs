//! Properties that hold for any bytes: run by the fuzzer in `fuzz/`, and by a test.

use input::{PROXY_HEADER_BYTES_MAX, Proxied, ProxyFault, ProxyReader};

/// The bytes are a header, or none: read at once and byte by byte it is the same, and no byte
/// behind it is taken.
pub(crate) fn proxy_header(bytes: &[u8]) {
    let at_once = read(bytes, usize::MAX);
    assert_eq!(read(bytes, 1), at_once);
    if let Ok((Some(_), taken)) = at_once {
        assert!((16..=PROXY_HEADER_BYTES_MAX).contains(&taken));
        assert_eq!(read(&bytes[..taken], usize::MAX), at_once, "the rest is not looked at");
    }
}

/// The finding, and how many bytes were taken for it.
fn read(bytes: &[u8], step: usize) -> Result<(Option<Proxied>, usize), ProxyFault> {
    let (mut reader, mut taken) = (ProxyReader::default(), 0);
    loop {
        let wanted = reader.wanted();
        assert!(wanted <= PROXY_HEADER_BYTES_MAX, "no claim of length counts");
        let count = wanted.min(step).min(bytes.len() - taken);
        if count == 0 {
            return Ok((None, taken));
        }
        taken += count;
        if let Some(told) = reader.append(&bytes[taken - count..taken])? {
            return Ok((Some(told), taken));
        }
    }
}
