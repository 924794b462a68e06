//! Text without case.

use unicase::UniCase;

/// Text after Unicode's full case folding. Lone surrogates are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// Folds WTF-8.
    pub(super) fn fold(wtf8: &[u8]) -> Self {
        #[cfg(test)]
        FOLDED.set(FOLDED.get() + wtf8.len());
        if wtf8.is_ascii() {
            return Self(wtf8.to_ascii_lowercase());
        }
        let mut folded = Vec::with_capacity(wtf8.len());
        for chunk in wtf8.utf8_chunks() {
            let valid = UniCase::unicode(chunk.valid()).to_folded_case();
            folded.extend_from_slice(valid.as_bytes());
            folded.extend_from_slice(chunk.invalid());
        }
        Self(folded)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
thread_local! {
    /// Bytes that this thread has folded.
    static FOLDED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl Text {
    pub(super) fn folded_so_far() -> usize {
        FOLDED.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_folded_as_unicode_does() {
        let fold = |text: &str| Text::fold(text.as_bytes());
        for (a, b) in [("STRASSE", "straße"), ("Σίσυφος", "ΣΊΣΥΦΟΣ"), ("ÀÉ", "àé"), ("ﬁ", "FI")]
        {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("a"), fold("á"));
        let lone = [b'A', 0xed, 0xa0, 0x80, b'B'];
        assert_eq!(Text::fold(&lone).as_bytes(), [b'a', 0xed, 0xa0, 0x80, b'b']);
    }
}
