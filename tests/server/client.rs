//! A small HTTP/1.1 client: one connection a request, and its reply.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use openkv::model::FEED_FRAME_BYTES_MAX;
use serde_json::Value;

use crate::kit::PATIENCE;

/// A reply.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Sends the head and the body of a request, without reading the answer.
pub(crate) fn send(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> TcpStream {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.write_all(head.as_bytes()).expect("a head");
    // A server that refuses early may not read it.
    let _ = stream.write_all(body);
    stream
}

/// Sends the head of a request, with the length of the body if it is known.
pub(crate) fn begin(
    to: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    bytes: Option<usize>,
) -> TcpStream {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    if let Some(bytes) = bytes {
        head += &format!("content-length: {bytes}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).expect("a head");
    stream
}

/// Sends the body, and reads the answer.
pub(crate) fn end(mut stream: TcpStream, body: &[u8]) -> Reply {
    stream.write_all(body).expect("a body");
    answer(stream)
}

/// Sends a request and reads its answer.
pub(crate) fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    answer(send(to, method, path, headers, body))
}

/// Sends a request as it is given.
pub(crate) fn raw(to: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(request).expect("a request");
    answer(stream)
}

fn answer(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => bytes.extend_from_slice(&piece[..len]),
            // The server closed with the body unread: its answer still counts.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer's head");
    let headers = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let status = headers.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a status");
    Reply { status, headers, body: bytes[end + 4..].to_vec() }
}

/// The frames of a watch, out of the chunks of its stream.
pub(crate) struct Stream {
    stream: TcpStream,
    bytes: Vec<u8>,
    in_body: bool,
    frames: openkv::codec::framing::Frames,
}

impl Stream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let frames = openkv::codec::framing::Frames::up_to(FEED_FRAME_BYTES_MAX);
        Self { stream, bytes: Vec::new(), in_body: false, frames }
    }

    /// The next message that is not empty; `None` at the stream's end.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(message) = self.frames.next_message().expect("a frame") {
                if message.is_empty() {
                    continue;
                }
                return Some(message);
            }
            let chunk = self.chunk()?;
            self.frames.push(&chunk);
        }
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        if !self.in_body {
            let head = self.until(b"\r\n\r\n")?;
            assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
            self.in_body = true;
        }
        let len = self.until(b"\r\n")?;
        let len = usize::from_str_radix(std::str::from_utf8(&len).expect("text").trim(), 16);
        let len = len.expect("a chunk's length");
        if len == 0 {
            return None;
        }
        while self.bytes.len() < len + 2 {
            self.more()?;
        }
        let chunk = self.bytes.drain(..len + 2).take(len).collect();
        Some(chunk)
    }

    fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.bytes.windows(end.len()).position(|found| found == end) {
                return Some(self.bytes.drain(..at + end.len()).collect());
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece).expect("news or an end") {
            0 => None,
            len => {
                self.bytes.extend_from_slice(&piece[..len]);
                Some(())
            }
        }
    }
}

/// The status of an answer whose body may be endless.
pub(crate) fn status(mut stream: TcpStream) -> u16 {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && stream.read(&mut byte).expect("a status line") > 0 {
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}
