//! The rules of engines without full-text search and without a file.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::{GoesOn, Indexer};
use openkv_core::model::{
    Hit, HitChoice, HitVisitor, IndexChoice, IndexRequest, IndexSpec, Kind, Search, Tokenizer,
};

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

fn exact(spec: &IndexSpec) -> IndexRequest {
    IndexRequest::exact(spec.clone())
}

pub(super) fn definitions_of_indexes_are_kept_and_searches_are_unsupported(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let spec = IndexSpec {
        name: "docs".into(),
        prefix: key("d"),
        fields: vec!["t".into()],
        tokenizer: Tokenizer::Unicode61,
        prefix_lengths: vec![],
    };
    let (choice, kept) = (IndexChoice::Name("docs".into()), Ok(spec.clone()));
    assert_eq!(writer.drop_index(&choice, soon()), Ok(false));
    for _ in 0..2 {
        assert_eq!(writer.create_index(&exact(&spec), soon()).map(|info| info.spec), kept);
    }
    let other = IndexSpec { fields: vec!["a".into(), "b.c".into()], ..spec.clone() };
    let refused = writer.create_index(&exact(&other), soon()).unwrap_err();
    assert!(refused.message().contains("differs in its fields"), "{refused}");
    assert_eq!(
        writer
            .create_index(&IndexRequest { replace: true, ..exact(&other) }, soon())
            .map(|info| info.spec),
        Ok(other.clone())
    );
    let far = IndexSpec { prefix: key("e"), ..spec };
    let refused =
        writer.create_index(&IndexRequest { replace: true, ..exact(&far) }, soon()).unwrap_err();
    assert!(refused.message().contains("with another prefix"), "{refused}");
    // There is nothing to build and to search here.
    assert_eq!(writer.build_indexes(NOW, soon()), Ok(false));
    assert!(!writer.next_deadlines().unwrap().building);
    let read = reader.read(NOW, &mut |snapshot| {
        let listed = snapshot.indexes(true)?.into_iter().map(|info| info.spec);
        assert_eq!(listed.collect::<Vec<_>>(), std::slice::from_ref(&other));
        let search = Search { prefix: key("d"), query: "a".into(), after: None, highlight: None };
        assert_unsupported(snapshot.search(&search, &mut NoHits), "search");
        Ok(())
    });
    assert_eq!(read, Ok(()));
    assert_eq!(writer.drop_index(&choice, soon()), Ok(true));
    assert_eq!(
        reader.read(NOW, &mut |snapshot| {
            assert_eq!(snapshot.indexes(false), Ok(vec![]));
            Ok(())
        }),
        Ok(())
    );
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
