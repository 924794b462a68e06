//! How much memory of a process the pages of a file take.

use super::{CACHE_BYTES_DEFAULT, Error, Result};

/// The options of a file about the memory for its pages. All handles of a process on a file share most of
/// its connections, so they agree on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageMemory {
    /// Bytes of the page cache of each connection; `None`: the default.
    pub cache_bytes: Option<u64>,
    /// Bytes of the file, from its beginning, that the readers map into memory; `None`: none.
    pub mmap_bytes: Option<u64>,
}

impl PageMemory {
    /// Bytes of the page cache of each connection.
    #[must_use]
    pub fn cache_bytes(self) -> u64 {
        self.cache_bytes.unwrap_or(CACHE_BYTES_DEFAULT)
    }

    /// Bytes of the file that the readers map; 0: none.
    #[must_use]
    pub fn mmap_bytes(self) -> u64 {
        self.mmap_bytes.unwrap_or(0)
    }

    /// Checks the options of a handle that joins a store opened with `open`. An option that is left out
    /// agrees with any value.
    ///
    /// # Errors
    /// `Invalid` if they differ.
    pub fn join(self, open: Self) -> Result<()> {
        for (name, wanted, used) in [
            ("cacheSize", self.cache_bytes, open.cache_bytes()),
            ("mmapSize", self.mmap_bytes, open.mmap_bytes()),
        ] {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != used) {
                return Err(Error::invalid(format!(
                    "the option {name} is {wanted}, but the file is open in this process with {used}, and its \
                     handles share their connections: leave the option out, or pass the same value"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_a_store_agree_on_its_memory() {
        let default = PageMemory::default();
        let large = PageMemory { cache_bytes: Some(1 << 30), mmap_bytes: Some(1 << 20) };
        assert!(default.join(default).is_ok());
        assert!(default.join(large).is_ok(), "what is left out agrees");
        assert!(large.join(large).is_ok());
        let usual = PageMemory { cache_bytes: Some(CACHE_BYTES_DEFAULT), mmap_bytes: Some(0) };
        assert!(usual.join(default).is_ok(), "the default may be named");
        let refused = large.join(default).expect_err("another cache");
        assert!(refused.message().contains("cacheSize is 1073741824"), "{refused}");
        let mapped = PageMemory { mmap_bytes: Some(4096), ..default };
        let refused = mapped.join(large).expect_err("another mapping");
        assert!(refused.message().contains("mmapSize is 4096, but"), "{refused}");
        assert!(refused.message().contains("with 1048576"), "{refused}");
    }
}
