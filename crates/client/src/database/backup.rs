//! The backup of a remote database into a file of this machine.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use crate::remote::{Cancel, Client, Destination};
use openkv_core::model::{Backup, Error, REMOTE_BACKUP_UNIT_BYTES, Result};
use openkv_engines::sqlite::Unfinished;
use openkv_store::call::{Reply, UnderWay, begin_backup};
use openkv_wire::protocol::frame::{frame_of, push_copied};

/// Downloads a backup. `frame` is that of a local one.
pub(super) fn backup(frame: &[u8], client: &Arc<Client>, cancel: Option<Cancel>, reply: Reply) {
    let (path, under_way) = match begin_backup(frame) {
        Ok(begun) => begun,
        Err(bug) => return reply.bad(bug),
    };
    match Target::new(path, under_way) {
        Err(error) => reply.tell(Err(error)),
        Ok(target) => client.backup(target, cancel, move |target, downloaded| {
            let finished = downloaded.and_then(|backup| target.finish(backup));
            reply.tell(finished.map(|copy| frame_of(|out| push_copied(out, &copy))));
        }),
    }
}

/// The file of a download, under a temporary name until it is complete.
struct Target {
    to: PathBuf,
    unfinished: Unfinished,
    file: File,
    under_way: UnderWay,
}

impl Target {
    fn new(to: PathBuf, under_way: UnderWay) -> Result<Self> {
        if to.exists() {
            let text = "exists already; name a file that does not";
            return Err(Error::invalid(format!("{} {text}", to.display())));
        }
        let unfinished = Unfinished::beside(&to);
        let created = File::create_new(unfinished.path());
        let file =
            created.map_err(|error| Error::unavailable(format!("{}: {error}", to.display())))?;
        Ok(Self { to, unfinished, file, under_way })
    }

    fn finish(self, backup: Backup) -> Result<Backup> {
        drop(self.file);
        self.unfinished.finish(&self.to)?;
        Ok(backup)
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        Error::unavailable(format!("{}: {error}", self.to.display()))
    }
}

impl Destination for Target {
    fn restart(&mut self) -> Result<()> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| self.failed(&error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| self.failed(&error))
    }

    fn step(&self, done: u64, all: u64) -> bool {
        let units = |bytes: u64| bytes.div_ceil(REMOTE_BACKUP_UNIT_BYTES);
        self.under_way.progress().step(units(done), units(all))
    }

    fn is_ended(&self) -> Box<dyn Fn() -> bool + Send> {
        let progress = self.under_way.progress().clone();
        Box::new(move || progress.is_ended())
    }
}
