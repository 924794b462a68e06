//! The rules of engines without full-text search and without a file.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::engine::{GoesOn, Indexer};
use crate::model::{Hit, HitChoice, HitVisitor, IndexChoice, IndexSpec, Kind, Search, Tokenizer};

fn assert_unsupported<T>(result: Result<T>, call: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{call} is offered"));
    assert_eq!(error.kind(), Kind::Unsupported, "{call}: {error}");
    assert!(error.message().contains(call), "{error}");
}

struct NoHits;

impl HitVisitor for NoHits {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        panic!("a hit: {}", hit.number)
    }

    fn snippets(&mut self, _snippets: Vec<(usize, String)>) {}
}

pub(super) fn searches_and_their_indexes_are_unsupported(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let spec = IndexSpec {
        name: "docs".into(),
        prefix: key("d"),
        fields: vec!["t".into()],
        tokenizer: Tokenizer::Unicode61,
        prefix_lengths: vec![],
    };
    assert_unsupported(writer.create_index(&spec, false, soon()), "search");
    // There is no index to drop, to list or to build.
    let choice = IndexChoice::Name("docs".into());
    assert_eq!(writer.drop_index(&choice, soon()), Ok(false));
    assert_eq!(writer.build_indexes(NOW, soon()), Ok(false));
    assert!(!writer.next_deadlines().unwrap().building);
    let read = reader.read(NOW, &mut |snapshot| {
        assert_eq!(snapshot.indexes(true), Ok(vec![]));
        let search = Search { prefix: key("d"), query: "a".into(), after: None, highlight: None };
        assert_unsupported(snapshot.search(&search, &mut NoHits), "search");
        Ok(())
    });
    assert_eq!(read, Ok(()));
}

pub(super) fn work_on_a_file_is_unsupported(engine: &impl Engine) {
    let goes_on: GoesOn = Arc::new(|| true);
    let mut writer = engine.writer().unwrap();
    let path = Path::new("copy.sqlite3");
    assert_unsupported(engine.backup(path, &mut |_, _| true), "backup");
    assert!(!path.exists());
    assert_unsupported(engine.check(1, &goes_on), "check");
    assert_unsupported(writer.checkpoint(), "checkpoint");
    assert_unsupported(writer.vacuum(soon(), &goes_on), "vacuum");
}
