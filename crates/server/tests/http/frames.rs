//! A client of HTTP/2 that writes its frames by hand.

use std::io::Write as _;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use server::Running;

use crate::client::Http;

/// A connection, and the number of its next stream.
pub(crate) struct Frames {
    pub(crate) http: Http,
    next: u32,
}

impl Frames {
    pub(crate) fn to(server: &Running) -> Self {
        let mut http = Http::to(server);
        http.socket.get_ref().set_nodelay(true).unwrap();
        http.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut frames = Self { http, next: 1 };
        frames.frame(SETTINGS, 0, 0, &[]);
        frames
    }

    pub(crate) fn get(&mut self, path: &str) -> u32 {
        self.request(GET, path, None)
    }

    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> u32 {
        self.request(POST, path, Some(body))
    }

    fn request(&mut self, method: u8, path: &str, body: Option<&[u8]>) -> u32 {
        let stream = self.next;
        self.next += 2;
        let mut head = vec![method, SCHEME];
        for (name, text) in [(PATH, path), (AUTHORITY, "localhost")] {
            head.extend([name, u8::try_from(text.len()).unwrap()]);
            head.extend(text.as_bytes());
        }
        let ends = if body.is_none() { END_STREAM } else { 0 };
        self.frame(HEADERS, END_HEADERS | ends, stream, &head);
        if let Some(body) = body {
            self.frame(DATA, END_STREAM, stream, body);
        }
        stream
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.http.socket.get_mut().write_all(&frame).unwrap();
    }

    /// Ends these streams, and keeps the connection.
    pub(crate) fn cancel(mut self, streams: [u32; 2]) -> Option<Self> {
        for stream in streams {
            self.frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
        }
        Some(self)
    }

    /// Resets the connection.
    pub(crate) fn reset(self, _: [u32; 2]) -> Option<Self> {
        set_socket_linger(self.http.socket.get_ref(), Some(Duration::ZERO)).unwrap();
        None
    }

    /// Closes it.
    pub(crate) fn close(self, _: [u32; 2]) -> Option<Self> {
        None
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;

// Entries of the static table of HPACK: two whole headers, `http`, and the names of two.
const GET: u8 = 0x82;
const POST: u8 = 0x83;
const SCHEME: u8 = 0x86;
const PATH: u8 = 0x04;
const AUTHORITY: u8 = 0x01;
