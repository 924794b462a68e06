//! The stream of a watch in frames: its opening, then states of all its keys.
//!
//! A message is an answer of the extension: the state, or the error that ends the stream.

use super::extension::{GOOD, read_answer};
use crate::protocol::frame::{Answer, parse_answers, parse_keys, push_error, unreadable};
use openkv_core::codec::framing::framed;
use openkv_core::model::{
    EncodedValue, Error, FRAMES_ANSWER_BYTES_MAX, Key, Limits, Result, Row, Versionstamp,
};

/// The versionstamp and value of a key's entry.
pub type WatchedEntry = Option<(Versionstamp, EncodedValue)>;

/// Encodes a request; `raw`: states without a difference are reported too.
pub fn write_request(keys: &[Key], raw: bool) -> Vec<u8> {
    let mut out = vec![u8::from(raw)];
    out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
    for key in keys {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key.as_bytes());
    }
    out
}

/// Decodes a request.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over the limits.
pub fn read_request(bytes: &[u8], limits: &Limits) -> Result<(Vec<Key>, bool)> {
    let cut = || unreadable("the frame is cut short");
    let (&raw, rest) = bytes.split_first().filter(|(raw, _)| **raw <= 1).ok_or_else(cut)?;
    let (count, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (count, max) = (u32::from_le_bytes(*count) as usize, limits.watched_keys_max);
    if count > max {
        return Err(Error::invalid(format!(
            "Too many keys watched in a single watch request (max {max}): {count} given"
        )));
    }
    let keys = parse_keys(rest, count).map_err(unreadable)?;
    let max = limits.range_key_bytes_max;
    if let Some(long) = keys.iter().find(|key| key.len() > max) {
        let given = long.len();
        return Err(Error::invalid(format!(
            "A key exceeds the key size limit (max {max} bytes): {given} given"
        )));
    }
    Ok((keys, raw == 1))
}

/// The frame of a state: versionstamp and value of each key, in the order of the request.
///
/// # Errors
/// `Invalid` for a state that exceeds the limit of clients.
pub fn write_state<'a>(
    entries: impl Iterator<Item = Option<(Versionstamp, &'a EncodedValue)>>,
) -> Result<Vec<u8>> {
    framed(FRAMES_ANSWER_BYTES_MAX, |out| {
        out.push(GOOD);
        for entry in entries {
            let mut answer = Answer::new(out);
            if let Some((stamp, EncodedValue { encoding, bytes })) = entry {
                let row = Row { key: &[], stamp, encoding: *encoding, value: bytes };
                answer.push(&row, false);
            }
            answer.finish();
        }
    })
}

/// The frame of an error, which ends the stream.
///
/// # Errors
/// `Invalid` for a text that exceeds the limit of clients.
pub fn write_end(error: &Error) -> Result<Vec<u8>> {
    framed(FRAMES_ANSWER_BYTES_MAX, |out| push_error(out, error))
}

/// Decodes a message: the entries of `count` keys, or the error that ends the stream.
///
/// # Errors
/// `Corrupt` for any other message.
pub fn read_message(bytes: &[u8], count: usize) -> Result<Result<Vec<WatchedEntry>>> {
    let strange = |why: &str| Error::corrupt(format!("a watch's message cannot be read: {why}"));
    let frame = match read_answer(bytes).map_err(strange)? {
        Ok(frame) => frame,
        Err(error) => return Ok(Err(error)),
    };
    let mut entries: Vec<WatchedEntry> = Vec::new();
    entries.resize_with(count, || None);
    let read = parse_answers(frame, count, &mut |at, row| {
        if let Some(place) = entries.get_mut(at) {
            let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
            *place = Some((row.stamp, value));
        }
    });
    read.map_err(|malformed| strange(malformed.what()))?;
    Ok(Ok(entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::no_part_is_parsed;

    #[test]
    fn requests_round_trip_and_truncated_ones_are_rejected() {
        let keys = [Key::from_encoded(vec![0x14]), Key::from_encoded(vec![0x15, 1])];
        let wide = Limits::wide();
        let body = write_request(&keys, true);
        assert_eq!(read_request(&body, &wide), Ok((keys.to_vec(), true)));
        no_part_is_parsed(&body, |bytes| read_request(bytes, &wide));
        let one = Limits { watched_keys_max: 1, ..Limits::wide() };
        assert!(read_request(&body, &one).unwrap_err().message().contains("max 1"));
        let long = [Key::from_encoded(vec![0x14; 3000])];
        assert!(read_request(&write_request(&long, false), &wide).is_err());
    }

    #[test]
    fn states_and_errors_round_trip() {
        let value = EncodedValue::le64(7);
        let state = [None, Some((Versionstamp::new(3), &value)), None];
        let frame = write_state(state.into_iter()).unwrap();
        let expected = vec![None, Some((Versionstamp::new(3), value.clone())), None];
        assert_eq!(read_message(&frame[4..], 3), Ok(Ok(expected)));
        assert!(read_message(&frame[4..], 2).is_err());
        let gone = Error::corrupt("damaged");
        let frame = write_end(&gone).unwrap();
        assert_eq!(read_message(&frame[4..], 3), Ok(Err(gone)));
    }
}
