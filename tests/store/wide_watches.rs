//! Watches of many keys: every state equals that of reading each key.

use std::collections::BTreeMap;

use crate::database::{Database, START_MS};
use crate::on_both;
use crate::writes::{delete, set, set_until, write};

fn names() -> Vec<String> {
    (0..40).map(|at| format!("k{at:02}")).collect()
}

/// Reproducible numbers (the upper half of a 64-bit congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 33) as usize) % end
    }
}

/// The contents of the database: value and expiry.
type Model = BTreeMap<String, (Vec<u8>, Option<i64>)>;

fn shown(model: &Model, names: &[String], now_ms: i64) -> Vec<Option<Vec<u8>>> {
    let alive =
        |name: &String| model.get(name).filter(|(_, end)| end.is_none_or(|end| end > now_ms));
    names.iter().map(|name| alive(name).map(|(value, _)| value.clone())).collect()
}

fn states_equal_those_of_reading_each_key(database: Database) {
    let mut names = names();
    // A key that is watched twice.
    names.push(names[3].clone());
    let watched: Vec<&str> = names.iter().map(String::as_str).collect();
    let watch = database.watch(&watched);
    let mut model = Model::new();
    let mut numbers = Numbers(7);
    let mut now_ms = START_MS;
    let mut before = shown(&model, &names, now_ms);
    assert_eq!(database.next(watch).get(), Ok(Some(before.clone())));
    for round in 0_u16..400 {
        let waiting = database.next(watch);
        let mut sets = false;
        if numbers.below(5) == 0 {
            let ms = 1 + numbers.below(30) as i64;
            now_ms += ms;
            database.pass(ms);
        } else {
            let mut mutations = Vec::new();
            for _ in 0..=numbers.below(3) {
                let name = &names[numbers.below(names.len())];
                // Sometimes a value is large.
                let large = numbers.below(40) == 0;
                let value = if large { vec![1; 60_000] } else { round.to_le_bytes().to_vec() };
                match numbers.below(6) {
                    0 => {
                        mutations.push(delete(name));
                        model.remove(name);
                    }
                    1 => {
                        let end_ms = now_ms + 1 + numbers.below(60) as i64;
                        mutations.push(set_until(name, &value, end_ms));
                        model.insert(name.clone(), (value, Some(end_ms)));
                    }
                    2 => mutations.push(set("unwatched", &value)),
                    _ => {
                        mutations.push(set(name, &value));
                        model.insert(name.clone(), (value, None));
                    }
                }
                sets = true;
            }
            if sets {
                database.must(write(mutations));
            }
        }
        let now = shown(&model, &names, now_ms);
        if now == before {
            // A set of the same value may be news or not; in either case the test asks again.
            database.settle_down();
            if let Some(answer) = waiting.now() {
                assert_eq!(answer, Ok(Some(now.clone())), "{round}");
            }
        } else {
            assert_eq!(waiting.get(), Ok(Some(now.clone())), "{round}");
        }
        before = now;
    }
}

fn a_commit_of_many_keys_is_one_state(database: Database) {
    let names = names();
    let watched: Vec<&str> = names.iter().map(String::as_str).collect();
    let watch = database.watch(&watched);
    database.next(watch).get().expect("no error");
    for round in 0..100_u8 {
        let waiting = database.next(watch);
        let [first, second] = [usize::from(round) % 40, usize::from(round) * 7 % 40 + 1];
        let both = vec![set(watched[first], &[round]), set(watched[second % 40], &[round])];
        database.must(write(both));
        let state = waiting.get().expect("no error").expect("not ended");
        assert_eq!(state[first], Some(vec![round]));
        assert_eq!(state[second % 40], Some(vec![round]));
    }
}

on_both! {
    states_equal_those_of_reading_each_key
    a_commit_of_many_keys_is_one_state
}

/// The external commit comes before the own one, so a state with only the own one never existed.
#[test]
fn external_commits_are_part_of_the_same_state() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    let names = names();
    let watched: Vec<&str> = names.iter().map(String::as_str).collect();
    let watch = ours.watch(&watched);
    ours.next(watch).get().expect("no error");
    for n in 1..=100_u8 {
        let [their, our] = [usize::from(n) % 20, 20 + usize::from(n) % 20];
        let waiting = ours.next(watch);
        theirs.must(write(vec![set(watched[their], &[n])]));
        ours.must(write(vec![set(watched[our], &[n])]));
        let mut state = waiting.get().expect("no error").expect("not ended");
        loop {
            if state[our] == Some(vec![n]) {
                assert_eq!(state[their], Some(vec![n]), "{n}");
                break;
            }
            state = ours.next(watch).get().expect("no error").expect("not ended");
        }
        assert_eq!(state[their], Some(vec![n]));
    }
}
