//! Framing of streams: each message follows its length as four bytes, little-endian. Length zero is
//! a keep-alive.

use crate::model::{Error, Result, WATCH_FRAME_BYTES_MAX};

/// A frame without a message: the stream is alive, and nothing has changed.
pub const KEEP_ALIVE: [u8; 4] = [0; 4];

/// Size of the length field.
const LEN_BYTES: usize = 4;

/// Appends a message with its length.
///
/// # Errors
/// `Invalid` for a message over the limit of clients.
pub fn push_frame(out: &mut Vec<u8>, message: &[u8]) -> Result<()> {
    let frame = framed(WATCH_FRAME_BYTES_MAX, |frame| frame.extend_from_slice(message))?;
    out.extend_from_slice(&frame);
    Ok(())
}

/// The frame of a message that `write` appends.
///
/// # Errors
/// `Invalid` for a message of more than `bytes_max` bytes.
pub fn framed(bytes_max: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>> {
    let mut frame = vec![0; LEN_BYTES];
    write(&mut frame);
    let bytes = frame.len() - LEN_BYTES;
    let len = u32::try_from(bytes).ok().filter(|_| bytes <= bytes_max);
    let len = len.ok_or_else(|| too_long(bytes, bytes_max))?;
    if let Some(place) = frame.first_chunk_mut() {
        *place = len.to_le_bytes();
    }
    Ok(frame)
}

/// Splits a stream that arrives in pieces of any size into messages.
///
/// ```
/// use openkv_core::codec::framing::{Frames, KEEP_ALIVE, push_frame};
/// let mut stream = KEEP_ALIVE.to_vec();
/// push_frame(&mut stream, b"text")?;
/// let mut frames = Frames::default();
/// frames.push(&stream);
/// assert_eq!(frames.next_message()?, Some(vec![]));
/// assert_eq!(frames.next_message()?, Some(b"text".to_vec()));
/// assert_eq!(frames.next_message()?, None);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// The number of bytes already returned.
    taken: usize,
    bytes_max: usize,
}

/// With the limit of a KV Connect watch.
impl Default for Frames {
    fn default() -> Self {
        Self::up_to(WATCH_FRAME_BYTES_MAX)
    }
}

impl Frames {
    /// With a limit of so many bytes for a message.
    #[must_use]
    pub const fn up_to(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), taken: 0, bytes_max }
    }

    /// Adds the next piece. Call [`Frames::next_message`] until it returns `None` before the next
    /// piece; the buffer then holds at most one frame and one piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// The next message, empty for a keep-alive; `None` until more bytes have arrived.
    ///
    /// # Errors
    /// `Invalid` for a frame over the limit, as soon as its length is known. The stream is unusable
    /// after that.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        if len > self.bytes_max {
            return Err(too_long(len, self.bytes_max));
        }
        let Some(message) = rest.get(..len) else { return Ok(None) };
        let message = message.to_vec();
        self.taken += LEN_BYTES + len;
        Ok(Some(message))
    }

    /// Whether part of a frame is buffered: a stream that ends now was cut.
    pub fn is_partial(&self) -> bool {
        self.taken < self.bytes.len()
    }
}

fn too_long(len: usize, bytes_max: usize) -> Error {
    Error::invalid(format!("a frame of a stream is too long (max {bytes_max} bytes): {len} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_same_messages() {
        let messages = [b"one".to_vec(), vec![], vec![7; 300], b"x".to_vec()];
        let mut stream = Vec::new();
        for message in &messages {
            push_frame(&mut stream, message).unwrap();
        }
        for size in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut got = Vec::new();
            for piece in stream.chunks(size) {
                frames.push(piece);
                while let Some(message) = frames.next_message().unwrap() {
                    got.push(message);
                }
            }
            assert_eq!(got, messages, "{size}");
            assert!(!frames.is_partial());
        }
    }

    #[test]
    fn a_frame_over_the_bound_is_refused_by_its_length() {
        let mut frames = Frames::default();
        frames.push(&(WATCH_FRAME_BYTES_MAX as u32).to_le_bytes());
        assert_eq!(frames.next_message(), Ok(None));
        assert!(frames.is_partial());
        let mut frames = Frames::default();
        frames.push(&(WATCH_FRAME_BYTES_MAX as u32 + 1).to_le_bytes());
        assert!(frames.next_message().unwrap_err().message().contains("too long"));
        assert!(push_frame(&mut Vec::new(), &vec![0; WATCH_FRAME_BYTES_MAX + 1]).is_err());
    }
}
