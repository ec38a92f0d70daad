//! Headers as proxies send them, and others.

use std::string::ToString as _;

use super::*;

/// A header of this command and family with these bytes behind its length.
fn header(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(block.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(block);
    bytes
}

/// From 192.0.2.7:1000 to 10.0.0.5:80, with extensions.
fn from_v4(extensions: &[u8]) -> Vec<u8> {
    let addresses = [192, 0, 2, 7, 10, 0, 0, 5, 0x03, 0xe8, 0, 80];
    header(PROXY, TCP4, &[&addresses[..], extensions].concat())
}

/// The finding, read as it is wanted: all at once, and byte by byte.
fn read(bytes: &[u8]) -> Result<Proxied, ProxyFault> {
    let by_steps = |step: usize| {
        let (mut reader, mut rest) = (ProxyReader::default(), bytes);
        loop {
            let count = reader.wanted().min(step).min(rest.len());
            let (now, later) = rest.split_at(count);
            rest = later;
            match reader.append(now) {
                Ok(None) => assert!(count > 0, "it ends in the middle"),
                Ok(Some(told)) => {
                    assert!(rest.is_empty(), "all bytes are its own");
                    return Ok(told);
                }
                Err(fault) => return Err(fault),
            }
        }
    };
    let found = by_steps(usize::MAX);
    assert_eq!(by_steps(1), found);
    found
}

#[test]
fn headers_tell_both_ends() {
    let (client, to) = ("192.0.2.7:1000".parse().unwrap(), "10.0.0.5:80".parse().unwrap());
    assert_eq!(read(&from_v4(&[])), Ok(Proxied::From { client, to }));
    let mut block = [0; 36];
    block[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
    block[16..32].copy_from_slice(&"::ffff:10.0.0.5".parse::<Ipv6Addr>().unwrap().octets());
    block[33] = 9;
    let client = "[2001:db8::7]:9".parse().unwrap();
    let to = "10.0.0.5:0".parse().unwrap();
    assert_eq!(read(&header(PROXY, TCP6, &block)), Ok(Proxied::From { client, to }));
    assert_eq!(read(&header(PROXY, UDP6, &block)), Ok(Proxied::From { client, to }));
}

#[test]
fn headers_may_tell_no_address() {
    for block in [&[][..], &[7; 12], &[0xff; 300]] {
        assert_eq!(read(&header(LOCAL, 0, block)), Ok(Proxied::Own));
        assert_eq!(read(&header(LOCAL, TCP4, block)), Ok(Proxied::Own), "all of it is skipped");
        assert_eq!(read(&header(PROXY, 0, block)), Ok(Proxied::Nameless));
    }
    assert_eq!(read(&header(PROXY, UNIX_STREAM, &[0; 216])), Ok(Proxied::Nameless));
}

#[test]
fn extensions_are_skipped_and_bounded() {
    for good in [&[0x04, 0, 0][..], &[0x02, 0, 2, b'a', b'b', 0xee, 0, 1, 0]] {
        assert!(read(&from_v4(good)).is_ok(), "{good:?}");
    }
    for wrong in [&[0x04][..], &[0x04, 0], &[0x04, 0, 1], &[0x04, 0, 0, 0x05, 0xff, 0xff, 1]] {
        assert_eq!(read(&from_v4(wrong)), Err(ProxyFault::CutOff), "{wrong:?}");
    }
    let most = PROXY_HEADER_BYTES_MAX - FIXED_BYTES - 12 - 3;
    let filled = |count: usize| {
        let length = u16::try_from(count).unwrap().to_be_bytes();
        from_v4(&[&[0x04][..], &length, &std::vec![0; count]].concat())
    };
    assert_eq!(filled(most).len(), PROXY_HEADER_BYTES_MAX);
    assert!(read(&filled(most)).is_ok());
    let refused = read(&filled(most + 1)).unwrap_err();
    assert_eq!(refused, ProxyFault::TooLong(2_033));
    assert!(refused.to_string().contains("2049 bytes, and 2048 are taken"));
}

#[test]
fn checksum_has_to_fit() {
    // Made by another implementation: CRC-32C of the header with zeros in place of the sum.
    let mut bytes = from_v4(&[0x03, 0, 4, 0, 0, 0, 0, 0x04, 0, 1, 9]);
    let sum = bitwise_crc32c(&bytes).to_be_bytes();
    bytes[FIXED_BYTES + 12 + 3..][..4].copy_from_slice(&sum);
    assert!(read(&bytes).is_ok());
    // Another kind of extension is skipped.
    let kind_at = FIXED_BYTES + 12;
    for at in (FIXED_BYTES..bytes.len()).filter(|at| *at != kind_at) {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x40;
        assert!(read(&wrong).is_err(), "byte {at}");
    }
    let short = from_v4(&[0x03, 0, 3, 0, 0, 0]);
    assert_eq!(read(&short), Err(ProxyFault::Checksum));
}

fn bitwise_crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1)))
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn other_beginnings_are_refused_at_once() {
    for (bytes, fault) in [
        (&b"GET / HTTP/1.1\r\n"[..], ProxyFault::NoHeader),
        (b"\x16\x03\x01", ProxyFault::NoHeader),
        (b"\r\n\r\n\0\r\nQUIT\r", ProxyFault::NoHeader),
        (b"PROXY TCP4 1.2.3.4 ", ProxyFault::Version1),
        (b"PROXX", ProxyFault::NoHeader),
        (b"\r\n\r\n\0\r\nQUIT\n\x11", ProxyFault::Version(0x11)),
        (b"\r\n\r\n\0\r\nQUIT\n\x22", ProxyFault::Version(0x22)),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", ProxyFault::TooLong(65_535)),
        (b"\r\n\r\n\0\r\nQUIT\n\x20\x00\xff\xff", ProxyFault::TooLong(65_535)),
    ] {
        assert_eq!(read(bytes), Err(fault), "{bytes:?}");
    }
    for family in [0x10, 0x13, 0x41, 0x01, 0xff] {
        assert_eq!(read(&header(PROXY, family, &[0; 40])), Err(ProxyFault::Family(family)));
    }
    for (family, count) in [(TCP4, 11), (TCP6, 35), (UNIX_STREAM, 215)] {
        let short = header(PROXY, family, &std::vec![0; count]);
        assert_eq!(read(&short), Err(ProxyFault::CutOff));
    }
}

#[test]
fn incomplete_headers_are_waited_for() {
    let whole = from_v4(&[0x04, 0, 1, 0]);
    for count in 0..whole.len() {
        let mut reader = ProxyReader::default();
        let mut rest = &whole[..count];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(reader.wanted().min(rest.len()));
            assert_eq!(reader.append(now), Ok(None));
            rest = later;
        }
        assert!(reader.wanted() > 0 && reader.wanted() <= whole.len() - count);
    }
}
