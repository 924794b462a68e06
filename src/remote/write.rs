//! Writes: a request each; those that are about the same key go one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::ask::{Again, Asker, Question, Unfit, whose};
use super::repeat;
use crate::connect::wire::atomic_write::{WriteAnswer, read_answer, write_request};
use crate::model::{AtomicWrite, Decision, Error, Key, Kind, Result};

/// Carries the writes out; their decisions come back in their order.
pub(super) async fn carry_out(
    asker: Arc<Asker>,
    writes: Vec<Result<AtomicWrite>>,
) -> Vec<Decision> {
    let unanswered = Error::internal("a write was not answered; please report this");
    let mut decisions = vec![Decision::Rejected(unanswered); writes.len()];
    let mut asked = JoinSet::new();
    for line in lines(writes) {
        let asker = asker.clone();
        asked.spawn(async move {
            let mut done = Vec::with_capacity(line.len());
            for (at, write) in line {
                let decided = match write {
                    Ok(write) => commit(&asker, write).await,
                    Err(error) => Err(error),
                };
                done.push((at, decided.unwrap_or_else(Decision::Rejected)));
            }
            done
        });
    }
    while let Some(done) = asked.join_next().await {
        // A line that has panicked leaves its writes unanswered, and the others theirs.
        for (at, decision) in done.unwrap_or_default() {
            if let Some(place) = decisions.get_mut(at) {
                *place = decision;
            }
        }
    }
    decisions
}

/// Some of the writes, with their places.
type Line = Vec<(usize, Result<AtomicWrite>)>;

/// The writes in lines, so that two about the same key are in one, in their order.
fn lines(writes: Vec<Result<AtomicWrite>>) -> Vec<Line> {
    if writes.len() == 1 {
        return vec![writes.into_iter().enumerate().collect()];
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut line_of: HashMap<Key, usize> = HashMap::new();
    for (at, write) in writes.into_iter().enumerate() {
        let mut keys = Vec::new();
        if let Ok(write) = &write {
            let (checks, mutations, _) = write.parts();
            keys.extend(checks.iter().map(|check| check.key.clone()));
            keys.extend(mutations.iter().map(|mutation| mutation.key().clone()));
        }
        let mut joined: Vec<usize> =
            keys.iter().filter_map(|key| line_of.get(key).copied()).collect();
        joined.sort_unstable();
        joined.dedup();
        let line = match joined.split_first() {
            None => {
                lines.push(Vec::new());
                lines.len() - 1
            }
            Some((first, others)) => {
                for other in others {
                    let moved = lines.get_mut(*other).map(std::mem::take).unwrap_or_default();
                    if let Some(line) = lines.get_mut(*first) {
                        line.extend(moved);
                        line.sort_unstable_by_key(|(at, _)| *at);
                    }
                    line_of.values_mut().filter(|of| *of == other).for_each(|of| *of = *first);
                }
                *first
            }
        };
        line_of.extend(keys.into_iter().map(|key| (key, line)));
        if let Some(line) = lines.get_mut(line) {
            line.push((at, write));
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

async fn commit(asker: &Asker, write: AtomicWrite) -> Result<Decision> {
    let again = if repeat::is_safe(&write) { Again::Guarded } else { Again::Harmful };
    let question = Question::plain("atomic_write", false, again, write_request(write)?);
    let (answer, sent_before) = asker
        .ask(&question, |_, bytes| match read_answer(bytes) {
            Ok(WriteAnswer::Disabled) => Err(Unfit::Disabled(Error::new(
                Kind::Denied,
                "Writes are disabled for this database",
            ))),
            Ok(answer) => Ok(answer),
            Err(error) => Err(Unfit::Malformed(error.message().to_owned())),
        })
        .await?;
    match answer {
        WriteAnswer::Committed(stamp) => Ok(Decision::Committed(stamp)),
        WriteAnswer::CheckFailed(_) if sent_before => Err(whose()),
        WriteAnswer::CheckFailed(failed) => Ok(Decision::CheckFailed(failed)),
        WriteAnswer::Disabled => Err(Error::internal("a disabled write was answered twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Limits, Mutation, WriteParts};

    fn delete(names: &[u8]) -> Result<AtomicWrite> {
        let key = |name: &u8| Key::from_encoded(vec![2, *name, 0]);
        let mutations = names.iter().map(|name| Mutation::Delete { key: key(name) }).collect();
        AtomicWrite::new(WriteParts { mutations, ..WriteParts::default() }, &Limits::default())
    }

    #[test]
    fn writes_about_one_key_keep_their_order_and_others_do_not_wait() {
        let writes = vec![
            delete(b"a"),
            delete(b"b"),
            delete(b"a"),
            Err(Error::invalid("over a limit")),
            delete(b"c"),
            delete(b"bc"),
            delete(b"b"),
        ];
        let places: Vec<Vec<usize>> =
            lines(writes).iter().map(|line| line.iter().map(|(at, _)| *at).collect()).collect();
        assert_eq!(places, [vec![0, 2], vec![1, 4, 5, 6], vec![3]]);
    }
}
