//! What messages show, and which targets are refused.

use std::sync::atomic::AtomicUsize;

use super::explain::redacted;
use super::*;

#[test]
fn messages_have_no_queries() {
    let text = "Error performing GET https://host/c/x?sig=SECRET&se=1 in 3s - why? (at \
                \"http://a/b?token=SECRET\")";
    let shown = redacted(text);
    assert!(!shown.contains("SECRET"), "{shown}");
    assert!(shown.contains("why? (at"), "{shown}");
}

/// A store that did not answer was asked for three times as long as one request may take, also by a process that closes.
#[test]
fn a_read_is_not_repeated_after_its_time_or_when_its_owner_closes() {
    let target = Target::over(Arc::new(object_store::memory::InMemory::new()), "test");
    let reads = |longest| {
        let count = AtomicUsize::new(0);
        let read = target.again(longest, || async {
            count.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(object_store::Error::Generic { store: "test", source: "late".into() })
        });
        assert!(target.wait_raw(read).unwrap().is_err());
        count.load(Ordering::Relaxed)
    };
    assert_eq!((reads(Duration::MAX), reads(Duration::ZERO)), (READS, 1));
    target.end();
    assert_eq!(reads(Duration::MAX), 1);
}

#[test]
fn other_targets_are_refused() {
    for (text, part) in [
        ("s3://bucket/path?key=1", "no password and no query"),
        ("s3://user:secret@bucket/path", "no password"),
        ("s3://bucket/a//b", "the path has an empty part"),
        ("postgres://host/a//b", "is no place for an archive"),
        ("postgres://host/db", "is no place for an archive"),
        ("http://host/path", "is no place for an archive"),
        ("/dev/null", "is a file"),
        ("/nowhere/at/all", "cannot be used"),
    ] {
        let error = Target::open(text, false).map(drop).unwrap_err();
        assert!(error.message().contains(part), "{text}: {error}");
        assert!(!error.message().contains("secret"), "{text}: {error}");
    }
}
