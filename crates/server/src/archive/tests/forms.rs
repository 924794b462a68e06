//! `tests/vectors/files/archive-form-1/` is an archive of the form before packed values: a snapshot with the commits
//! 1 to 3, and an object for each of the commits 4 and 5.

use std::path::Path;

use super::*;
use crate::archive::{list, verify};
use openkv_core::model::Kind;

/// A copy of the archive in a folder of its own.
fn form_1() -> tempfile::TempDir {
    let kept =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/files/archive-form-1");
    let folder = tempfile::tempdir().unwrap();
    copy(&kept, &folder.path().join("archive"));
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(std::result::Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn form_of(archive: &Path) -> u64 {
    let text = std::fs::read(archive.join("openkv-archive.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["form"].as_u64().unwrap()
}

#[test]
fn an_archive_of_form_1_is_restored_and_goes_on_as_form_2() {
    let folder = form_1();
    let archive = folder.path().join("archive");
    let target = archive.to_str().unwrap().to_owned();
    assert_eq!(form_of(&archive), 1);
    let findings = || verify(&target, &folder.path().join("scratch"), &mut |_, _| true).unwrap();
    assert_eq!(findings().findings, Vec::<String>::new());
    let options = |name: &str, commit: Option<u64>| RestoreOptions {
        target: target.clone(),
        file: folder.path().join(name),
        at: commit.map(|commit| When::Commit(Versionstamp::new(commit))),
        range: None,
    };
    for (commit, count) in [(Some(3), 3), (Some(4), 4), (None, 5)] {
        let name = format!("restored-{count}");
        let restored = restore(&options(&name, commit), &mut |_, _| true).unwrap();
        assert_eq!(restored.entries, count);
        assert_eq!(entries_of(&folder.path().join(name)).len() as u64, count);
    }
    let path = folder.path().join("restored-5");
    let machine = Machine::on(path, tempfile::tempdir().unwrap());
    let archiver = machine.archive(&target);
    machine.set("k", "of this version");
    machine.settle(&archiver);
    stop(archiver);
    assert_eq!(form_of(&archive), 2);
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
    assert_eq!(list(&target).unwrap().timelines.len(), 2);
    assert_eq!(findings().findings, Vec::<String>::new());
}

#[test]
fn an_archive_of_a_newer_form_is_refused_and_not_changed() {
    let folder = form_1();
    let archive = folder.path().join("archive");
    let manifest = archive.join("openkv-archive.json");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("\"form\": 1", "\"form\": 3");
    std::fs::write(&manifest, &text).unwrap();
    let machine = Machine::new();
    let target = archive.to_str().unwrap();
    for refused in [
        list(target).map(drop),
        machine.restored(target, None).map(drop),
        machine.archive_with(machine.options(target)).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.message().contains("form 3"), "{error}");
        assert!(error.message().contains("update openkv"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), text);
}
