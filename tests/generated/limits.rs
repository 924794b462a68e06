//! The tables of bounds: those of a handle, and the fixed ones that the sources mark as public.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use openkv::model::{self, Limits};

use crate::{path, table};

/// The order of the groups on the page.
const GROUPS: [&str; 13] = [
    "reads",
    "filters",
    "texts",
    "deletions",
    "search",
    "indexes",
    "queues",
    "leases",
    "limiters",
    "feeds",
    "opening",
    "metrics",
    "a server",
];

/// The mark of a constant that the page shows: its group, and what it bounds.
const PUBLIC: &str = "// Public (";

/// The table of a handle's limits.
pub(crate) fn of_a_handle() -> String {
    let (deno, wide) = (Limits::default(), Limits::wide());
    let rows = deno.entries().zip(wide.entries());
    let rows = rows.map(|((name, deno), (_, wide))| {
        vec![format!("`{name}`"), meaning(name), deno.to_string(), wide.to_string()]
    });
    table(&["name", "bounds", "`\"deno\"`", "`\"wide\"`"], rows)
}

fn meaning(name: &str) -> String {
    let text = Limits::meaning(name).expect("a limit").trim().trim_end_matches('.');
    let (first, rest) = text.split_at(1);
    first.to_lowercase() + rest
}

/// The properties of `KvLimits` in index.d.ts.
pub(crate) fn declared() -> String {
    let mut out = String::new();
    for (name, deno) in Limits::default().entries() {
        let meaning = Limits::meaning(name).expect("a limit").trim();
        writeln!(out, "  /** {meaning} Default: {deno}. */\n  {name}: number;").expect("a string");
    }
    out
}

/// The value of an expression of integers, constants and `*`.
fn evaluate(expression: &str, known: &BTreeMap<String, u64>) -> Option<u64> {
    expression.split('*').try_fold(1_u64, |product, factor| {
        let factor = factor.trim();
        let number = factor.replace('_', "").parse().ok();
        number.or_else(|| known.get(factor).copied()).map(|number: u64| product * number)
    })
}

/// The table of the fixed bounds.
pub(crate) fn fixed() -> String {
    fixed_of(&sources())
}

/// The sources of the bounds.
fn sources() -> Vec<String> {
    let folder = fs::read_dir(path("crates/core/src/model/limits")).expect("the folder of limits");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("a file").path()).collect();
    files.push(path("crates/core/src/model/limits.rs"));
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("a file of limits")).collect()
}

fn fixed_of(sources: &[String]) -> String {
    let mut known = BTreeMap::new();
    let mut rows = Vec::new();
    for text in sources {
        let mut public = None;
        for line in text.lines() {
            if let Some(mark) = line.strip_prefix(PUBLIC) {
                public =
                    Some(mark.split_once("): ").expect("a group and what it bounds").to_owned());
            }
            let Some(rest) = line.strip_prefix("pub const ") else { continue };
            let (name, rest) = rest.split_once(':').expect("a type");
            let value = rest.split_once(" = ").map(|(_, value)| value.trim_end_matches(';'));
            let value = value.and_then(|value| evaluate(value, &known));
            if let Some(value) = value {
                known.insert(name.to_owned(), value);
            }
            if let Some((group, what)) = public.take() {
                let group = GROUPS.iter().position(|of| *of == group).expect("a group of the page");
                rows.push((group, name.to_owned(), value.expect("a number"), what.to_owned()));
            }
        }
    }
    rows.sort_by_key(|(group, ..)| *group);
    let mut before = None;
    let rows = rows.into_iter().map(|(group, name, value, what)| {
        let is_first = before.replace(group) != Some(group);
        let of = GROUPS.get(group).filter(|_| is_first).unwrap_or(&"");
        vec![(*of).to_owned(), format!("`{name}`"), value.to_string(), what]
    });
    table(&["of", "constant", "value", "bounds"], rows)
}

/// Constants of `model` as they are in JavaScript, where they are needed before the addon is loaded, or in each call.
macro_rules! shared {
    ($($meaning:literal $name:ident;)+) => {
        /// `js/model/limits.ts`.
        pub(crate) fn shared() -> String {
            let mut out = SHARED_HEAD.to_owned();
            $(
                let value = serde_json::to_string(&model::$name).expect("a number, or numbers");
                let value = value.replace(',', ", ");
                let of = if value.starts_with('[') { ": readonly number[]" } else { "" };
                writeln!(
                    out, "\n/** {} */\nexport const {}{of} = {value};", $meaning, stringify!($name),
                ).expect("a string");
            )+
            out
        }
    };
}

const SHARED_HEAD: &str = "\
// Duty: the bounds that JavaScript needs before it has loaded the addon, or in each call.
// Generated from crates/core/src/model/limits.rs and the files below it by `npm run generate`: do not edit.
";

shared! {
    "Waiting times before the retries of a message of Deno's queue." BACKOFF_DEFAULT_MS;
    "Entries that a page reads without another thread, those of value indexes among them." BRIEF_SCAN_ENTRIES_MAX;
    "The default of `busyTimeout`." BUSY_TIMEOUT_MS_DEFAULT;
    "The largest `cacheSize`." CACHE_BYTES_MAX;
    "The smallest `cacheSize`." CACHE_BYTES_MIN;
    "The longest duration: a hundred years." DURATION_MS_MAX;
    "Encoded bytes of a filter; the addon checks it again." FILTER_BYTES_MAX;
    "First part of the keys of the entries about messages whose results are kept." JOB_ENTRIES;
    "The line of the context of a message that says for how many ms its result is kept." KEEP_RESULT;
    "Bytes of the frame of an inline commit." INLINE_BYTES_MAX;
    "Writes of the batch of an inline commit." INLINE_WRITES_MAX;
    "Characters of a key in a message." KEY_PRINT_CHARS_MAX;
    "The default of the `ttl` of a lease." LEASE_TTL_MS_DEFAULT;
    "The smallest `ttl` of a lease." LEASE_TTL_MS_MIN;
    "The largest cost of a take from a limiter." LIMITER_COST_MAX;
    "The largest `limit` of a limiter." LIMITER_LIMIT_MAX;
    "The largest `mmapSize`." MMAP_BYTES_MAX;
    "Waiting times before the retries of a message of a named queue." NAMED_BACKOFF_DEFAULT_MS;
    "The largest `maxOpen`." OPEN_DATABASES_MAX;
    "The largest `limit` of `paginate`." PAGE_ENTRIES_MAX;
    "The largest `keyBytesMax` of a database on PostgreSQL." POSTGRES_KEY_BYTES_MAX;
    "How long the progress of a message is kept whose result is not." PROGRESS_KEPT_MS;
    "Entries of a page that `sort: true` sorts." SORT_ENTRIES_MAX;
    "The last time of a Date." TIME_MS_MAX;
    "Nesting of a value, in containers." VALUE_DEPTH_MAX;
}

#[test]
fn a_new_limit_is_one_edit() {
    let mut sources = sources();
    sources
        .push("// Public (queues): messages of a batch\npub const NEW_MAX: u32 = 2 * 8;\n".into());
    let more = fixed_of(&sources);
    let before = fixed();
    let added: Vec<_> = more.lines().filter(|line| !before.contains(line)).collect();
    assert_eq!(added, ["|  | `NEW_MAX` | 16 | messages of a batch |"]);
}
