//! Numbers, bytes and times one behind the other: what the formats of the replication log and of the history
//! are made of.

use super::Malformed;
use crate::model::Encoding;

/// Appends a number: seven bits a byte, the lowest first, the high bit set on all but the last.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their length.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The bytes that are not read yet.
pub(super) struct Fields<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn of(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    /// How many bytes are read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.all.len()
    }

    pub(super) fn fault<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed::new(what, self.at))
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.all.get(self.at..end)) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => self.fault("bytes that end too early"),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        match str::from_utf8(self.slice()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => self.fault("a text that is not UTF-8"),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let bytes = self.take(1)?;
        Ok(bytes.first().copied().unwrap_or_default())
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return self.fault("a number that is too large");
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.fault("a number that is too large")
    }

    pub(super) fn length(&mut self) -> Result<usize, Malformed> {
        let number = self.number()?;
        usize::try_from(number).or_else(|_| self.fault("a length that is too large"))
    }

    pub(super) fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.length()?;
        self.take(len)
    }

    /// All bytes that are left.
    pub(super) fn all_left(&mut self) -> &'a [u8] {
        let rest = self.all.get(self.at..).unwrap_or_default();
        self.at = self.all.len();
        rest
    }

    pub(super) fn value(&mut self) -> Result<(Encoding, &'a [u8]), Malformed> {
        let id = self.byte()?;
        match Encoding::from_id(i64::from(id)) {
            Some(encoding) => Ok((encoding, self.slice()?)),
            None => self.fault("an unknown encoding of a value"),
        }
    }

    pub(super) fn time(&mut self) -> Result<i64, Malformed> {
        let bytes = self.take(8)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)))
    }
}
