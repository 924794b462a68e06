//! The rules of full-text indexes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::range::{deletion, within};
use super::*;
use crate::{GoesOn, Indexer};
use openkv_core::codec::cbor;
use openkv_core::model::{
    Among, Deletion, Highlight, Hit, HitChoice, HitVisitor, INDEX_BUILD_ROWS_MAX, IndexChoice,
    IndexInfo, IndexRequest, IndexSpec, Kind, Node, QUERY_DEPTH_MAX, QUERY_TERMS_MAX, Search, Time,
    Tokenizer, Value,
};

pub(crate) fn of(parts: &[&str]) -> Key {
    Key::from_encoded(parts.iter().flat_map(|part| key(part).into_bytes()).collect())
}

pub(crate) fn doc(name: &str, text: &str) -> Mutation {
    doc_until(name, text, None)
}

pub(super) fn doc_until(name: &str, text: &str, expire_at_ms: Option<i64>) -> Mutation {
    texts_at(&["d", name], &[("t", text)], expire_at_ms)
}

/// Stores an object of texts.
pub(super) fn texts_at(key: &[&str], texts: &[(&str, &str)], until: Option<i64>) -> Mutation {
    let mut value = Value::new(Node::Null);
    let field = |(name, text): &(&str, &str)| ((*name).into(), Node::String((*text).into()));
    let fields: Vec<_> = texts.iter().map(field).collect();
    let fields = fields.into_iter().map(|(name, text)| (name, value.push(text))).collect();
    value.set(value.root_id(), Node::Object(fields));
    let value = EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode(&value).unwrap() };
    Mutation::Set { key: of(key), suffixed: false, value, expiry: until.map(Time::At) }
}

fn exact(spec: &IndexSpec) -> IndexRequest {
    IndexRequest::exact(spec.clone())
}

fn spec() -> IndexSpec {
    IndexSpec {
        name: "docs".into(),
        prefix: of(&["d"]),
        fields: vec!["t".into(), "u".into()],
        tokenizer: Tokenizer::Unicode61,
        prefix_lengths: vec![2],
    }
}

/// A search once continued for seconds after its caller had gone.
pub(super) fn a_search_can_be_cancelled(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    writer.create_index(&exact(&spec()), soon()).unwrap();
    for first in (0..1000).step_by(250) {
        let docs = (first..first + 250).map(|n| doc(&format!("{n}"), &format!("word a{n} b{n}")));
        mutate(&mut writer, docs.collect());
    }
    let mut reader = engine.reader().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    // Before the first hit, because all hits are sorted first.
    let counter = calls.clone();
    let ends: GoesOn = Arc::new(move || counter.fetch_add(1, Ordering::SeqCst) < 3);
    let mut find = |goes_on: &GoesOn, text: &str| {
        let mut taken = Taken { max: 5000, keys: vec![], places: vec![], snippets: vec![] };
        let found = reader.read_while(NOW, goes_on, &mut |snapshot| {
            snapshot.search(&query(text), &mut taken).map(drop)
        });
        (found.map_err(|error| error.kind()), taken.keys.len())
    };
    let terms: Vec<String> = (0..60).map(|n| format!("a{n}*")).collect();
    for text in ["word", &terms.join(" OR ")] {
        calls.store(0, Ordering::SeqCst);
        assert_eq!(find(&ends, text), (Err(Kind::Unavailable), 0), "{text}");
        assert_eq!(calls.load(Ordering::SeqCst), 4);
    }
    // The reader remains usable, and the next search is not cancelled.
    let goes_on: GoesOn = Arc::new(|| true);
    assert_eq!(find(&goes_on, "word"), (Ok(()), 1000));
    assert_eq!(found_at(&mut reader, "a7 b7", NOW), ["7"]);
}

/// Takes up to `max` hits.
struct Taken {
    max: usize,
    keys: Vec<Key>,
    places: Vec<(f64, i64)>,
    snippets: Vec<Vec<(usize, String)>>,
}

impl HitVisitor for Taken {
    fn hit(&mut self, hit: &Hit<'_>) -> HitChoice {
        if self.keys.len() == self.max {
            return HitChoice::Stop;
        }
        self.keys.push(Key::from_encoded(hit.row.key.to_vec()));
        self.places.push((hit.score, hit.number));
        HitChoice::Take
    }

    fn snippets(&mut self, snippets: Vec<(usize, String)>) {
        self.snippets.push(snippets);
    }
}

fn search(reader: &mut impl Reader, search: &Search, max: usize, now_ms: i64) -> Result<Taken> {
    let mut taken = Taken { max, keys: vec![], places: vec![], snippets: vec![] };
    reader.read(now_ms, &mut |snapshot| snapshot.search(search, &mut taken).map(drop))?;
    Ok(taken)
}

fn query(text: &str) -> Search {
    Search { prefix: of(&["d"]), query: text.into(), after: None, highlight: None }
}

/// The last parts of the keys that a query finds, sorted.
fn found_at(reader: &mut impl Reader, text: &str, now_ms: i64) -> Vec<String> {
    let taken = search(reader, &query(text), 100_000, now_ms).unwrap();
    let name = |key: &Key| {
        let bytes = key.as_bytes();
        String::from_utf8(bytes[4..bytes.len() - 1].to_vec()).unwrap()
    };
    let mut names: Vec<_> = taken.keys.iter().map(name).collect();
    names.sort();
    names
}

fn found(reader: &mut impl Reader, text: &str) -> Vec<String> {
    found_at(reader, text, NOW)
}

fn infos(reader: &mut impl Reader) -> Vec<IndexInfo> {
    read(reader, NOW, |snapshot| snapshot.indexes(true))
}

pub(super) fn an_index_follows_every_change(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let info = writer.create_index(&exact(&spec()), soon()).unwrap();
    assert!(!info.building, "there is nothing to build");
    let mutations = vec![doc("a", "red bike"), doc("b", "green bike"), doc("c", "Réd 'BUS'")];
    mutate(&mut writer, mutations);
    assert_eq!(found(&mut reader, "red"), ["a", "c"]);
    assert_eq!(found(&mut reader, "bi*"), ["a", "b"]);
    assert_eq!(found(&mut reader, "bike NOT red"), ["b"]);
    assert_eq!(found(&mut reader, "t:bus OR \"green bike\""), ["b", "c"]);
    assert_eq!(found(&mut reader, "u:red"), [""; 0]);

    let remove = Mutation::Delete { key: of(&["d", "c"]) };
    let rejected = vec![doc("x", "red"), sum("text", 1)];
    mutate(&mut writer, vec![set("text", b"not a number")]);
    commit(
        &mut writer,
        vec![write(vec![], rejected), write(vec![], vec![doc("a", "blue boat"), remove])],
    );
    assert_eq!(found(&mut reader, "red"), [""; 0]);
    assert_eq!(found(&mut reader, "blue"), ["a"]);

    // An expired entry is absent before the sweep; a value without text is no document.
    let ending = doc_until("e", "brief", Some(NOW + 5));
    let bytes = Mutation::Set {
        key: of(&["d", "b"]),
        suffixed: false,
        value: EncodedValue { encoding: Encoding::Bytes, bytes: b"green".to_vec() },
        expiry: None,
    };
    mutate(&mut writer, vec![ending, bytes]);
    assert_eq!(found_at(&mut reader, "brief", NOW + 4), ["e"]);
    assert_eq!(found_at(&mut reader, "brief", NOW + 5), [""; 0]);
    assert_eq!(found(&mut reader, "green"), [""; 0]);
    assert_eq!(infos(&mut reader)[0].documents, 2);
    apply_at(&mut writer, Work { sweep_max: 10, durable: true, ..Work::default() }, NOW + 5);
    assert_eq!(infos(&mut reader)[0].documents, 1);
    assert_eq!(found(&mut reader, "brief"), [""; 0]);
    reader.release();
}

pub(super) fn an_index_follows_sums_expiries_deletions_and_dead_messages(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    writer.create_index(&exact(&spec()), soon()).unwrap();
    let at = |name: &str| of(&["d", name]);
    // An array of one object, `{ t: <letter> }`.
    let items = |letter: u8| vec![0x81, 0xa1, 0x61, b't', 0x61, letter];
    let grow = |name: &str, letter, front| Mutation::Append {
        expiry: None,
        key: at(name),
        items: items(letter),
        front,
        value_bytes_max: 1000,
    };
    mutate(&mut writer, vec![grow("a", b'x', false), doc("n", "x")]);
    assert_eq!(found(&mut reader, "x"), ["a", "n"]);
    let more = vec![grow("a", b'y', false), grow("a", b'z', true), grow("b", b'z', true)];
    mutate(&mut writer, more);
    assert_eq!(found(&mut reader, "\"z x y\""), ["a"]);
    assert_eq!(found(&mut reader, "z"), ["a", "b"]);

    // A number replaces the text.
    let operand = EncodedValue::le64(5);
    let sum = Mutation::Arith { op: Arith::Sum, key: at("n"), operand };
    mutate(&mut writer, vec![Mutation::Delete { key: at("n") }, sum]);
    assert_eq!(found(&mut reader, "x"), ["a"]);

    // Changing the expiry makes the entry absent or present.
    let set_expiry = |name: &str, expire_at_ms: Option<i64>| {
        let expiry = expire_at_ms.map(Time::At);
        let set_expiry =
            Mutation::SetExpiry { key: at(name), expiry, required: true, shortens: false };
        write(vec![], vec![set_expiry])
    };
    commit(&mut writer, vec![set_expiry("a", Some(NOW + 5)), set_expiry("b", Some(NOW + 5))]);
    commit(&mut writer, vec![set_expiry("b", None)]);
    assert_eq!(found_at(&mut reader, "z", NOW + 4), ["a", "b"]);
    assert_eq!(found_at(&mut reader, "z", NOW + 5), ["b"]);
    commit(&mut writer, vec![set_expiry("b", Some(NOW))]);
    assert_eq!(found(&mut reader, "z"), ["a"]);

    // The value of a dead message replaces the entry.
    let message = Message {
        due: Time::At(NOW),
        keys_if_undelivered: vec![at("a"), at("left")],
        value: items(b'w'),
        ..Message::default()
    };
    let message = WriteParts { messages: vec![message], ..WriteParts::default() };
    commit(&mut writer, vec![atomic(message)]);
    let (id, _) = claim(&mut writer, 7, NOW).remove(0);
    settle(&mut writer, id, 7, Outcome::Failed, NOW);
    assert_eq!(found(&mut reader, "w"), ["a", "left"]);
    assert_eq!(found(&mut reader, "x OR y OR z"), [""; 0]);

    let among = Among::Span { start: at(""), end: at("b") };
    commit(&mut writer, vec![deletion(Deletion { among, ..within("", "", 9) })]);
    assert_eq!(found(&mut reader, "w"), ["left"]);
    apply_at(&mut writer, Work { sweep_max: 10, durable: true, ..Work::default() }, NOW + 5);
    assert_eq!(infos(&mut reader)[0].documents, 1);
}

pub(super) fn an_index_over_rows_is_built_in_steps_while_they_change(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let count = INDEX_BUILD_ROWS_MAX + 100;
    let name = |at: usize| format!("n{at:05}");
    let sets = (0..count).map(|at| write(vec![], vec![doc(&name(at), "old")]));
    commit(&mut writer, sets.collect());
    // Its bytes begin like the prefix, but it is another string.
    let other = Key::from_encoded(b"\x02d\x00\xff\x00\x02x\x00".to_vec());
    let value = EncodedValue {
        encoding: Encoding::Cbor,
        bytes: vec![0xa1, 0x61, b't', 0x63, b'o', b'l', b'd'],
    };
    let set = Mutation::Set { key: other, suffixed: false, value, expiry: None };
    mutate(&mut writer, vec![set]);

    assert!(!writer.next_deadlines().unwrap().building);
    assert!(writer.create_index(&exact(&spec()), soon()).unwrap().building);
    assert!(writer.next_deadlines().unwrap().building);
    assert!(writer.build_indexes(NOW, soon()).unwrap());
    reader.release();
    assert_eq!(found(&mut reader, "old").len(), INDEX_BUILD_ROWS_MAX);
    assert_eq!(infos(&mut reader)[0].scanned, INDEX_BUILD_ROWS_MAX as u64);
    // Before and behind the position of the builder.
    let last = name(count - 1);
    let changes = vec![doc(&name(0), "new"), doc(&last, "new"), doc("z", "new old")];
    mutate(&mut writer, changes);
    while writer.build_indexes(NOW, soon()).unwrap() {}
    assert_eq!(found(&mut reader, "new"), [name(0), last, "z".to_owned()]);
    assert_eq!(found(&mut reader, "old").len(), count - 1);
    let info = infos(&mut reader).remove(0);
    assert_eq!((info.building, info.documents), (false, count as u64 + 1));
    assert!(!writer.next_deadlines().unwrap().building);
}

pub(super) fn hits_are_ranked_paged_and_highlighted(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    writer.create_index(&exact(&spec()), soon()).unwrap();
    let texts = ["bike", "a bike <b> in a very long text about other things", "bike", "bike bike"];
    let mut mutations: Vec<_> =
        texts.iter().enumerate().map(|(at, text)| doc(&at.to_string(), text)).collect();
    // Makes the term rare, since BM25 ranks common terms alike.
    mutations.extend((0..20).map(|at| doc(&format!("x{at}"), "something else")));
    mutate(&mut writer, mutations);
    let all = search(&mut reader, &query("bike"), 10, NOW).unwrap();
    assert!(all.places.is_sorted_by(|a, b| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)));
    assert!(all.places.iter().all(|(score, _)| *score > 0.0));
    assert_eq!(all.keys.len(), 4);
    assert_eq!(all.keys[3], of(&["d", "1"]));
    for at in 0..4 {
        let after = Search { after: Some(all.places[at]), ..query("bike") };
        assert_eq!(search(&mut reader, &after, 10, NOW).unwrap().keys, all.keys[at + 1..]);
    }
    let narrow = Search { prefix: of(&["d", "1"]), ..query("bike") };
    assert_eq!(search(&mut reader, &narrow, 10, NOW).unwrap().keys, []);

    let highlight =
        Highlight { before: "<b>".into(), after: "</b>".into(), ellipsis: "…".into(), terms: 4 };
    let marked = Search { highlight: Some(highlight), ..query("bike") };
    let marked = search(&mut reader, &marked, 10, NOW).unwrap();
    assert_eq!(marked.snippets.len(), 4);
    assert_eq!(marked.snippets[3], [(0, "a <b>bike</b> <b> in…".to_owned())]);
}

pub(super) fn indexes_are_listed_rejected_and_dropped(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let refused = search(&mut reader, &query("a"), 1, NOW).err().unwrap();
    assert!(refused.message().contains("no index covers this prefix"), "{refused}");
    writer.create_index(&exact(&spec()), soon()).unwrap();
    writer.create_index(&exact(&spec()), soon()).unwrap();
    let other = IndexSpec { prefix: of(&["d", "e"]), name: "deeper".into(), ..spec() };
    writer.create_index(&exact(&other), soon()).unwrap();
    for (wrong, words) in [
        (IndexSpec { fields: vec!["u".into()], ..spec() }, "differs in its fields"),
        (IndexSpec { tokenizer: Tokenizer::Porter, ..spec() }, "differs in its tokenizer"),
        (IndexSpec { prefix_lengths: vec![], ..spec() }, "differs in its prefixLengths"),
        (IndexSpec { name: "x".into(), ..spec() }, "differs in its name"),
        (IndexSpec { prefix: of(&["z"]), ..spec() }, "the name 'docs' is that of"),
        (IndexSpec { fields: vec![], ..spec() }, "fields must name 1 to"),
        (IndexSpec { prefix_lengths: vec![0], ..spec() }, "prefixLengths must be"),
    ] {
        let error = writer.create_index(&exact(&wrong), soon()).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
    // A name of another prefix is refused with `replace` too, and nothing is removed.
    let clash = IndexSpec { name: "deeper".into(), fields: vec!["u".into()], ..spec() };
    let error =
        writer.create_index(&IndexRequest { replace: true, ..exact(&clash) }, soon()).unwrap_err();
    assert!(error.message().contains("the name 'deeper' is that of"), "{error}");
    assert_eq!(infos(&mut reader).len(), 2);
    let others = IndexSpec { fields: vec!["u".into()], ..spec() };
    assert_eq!(
        writer
            .create_index(&IndexRequest { replace: true, ..exact(&others) }, soon())
            .unwrap()
            .spec,
        others
    );
    let again =
        writer.create_index(&IndexRequest { replace: true, ..exact(&others) }, soon()).unwrap();
    assert_eq!((again.spec, infos(&mut reader).len()), (others, 2));
    assert_eq!(
        writer
            .create_index(&IndexRequest { replace: true, ..exact(&spec()) }, soon())
            .unwrap()
            .spec,
        spec()
    );
    let names: Vec<_> = infos(&mut reader).into_iter().map(|info| info.spec.name).collect();
    assert_eq!(names, ["deeper", "docs"]);
    assert!(!writer.drop_index(&IndexChoice::Name("none".into()), soon()).unwrap());
    assert!(writer.drop_index(&IndexChoice::Name("docs".into()), soon()).unwrap());
    assert!(writer.drop_index(&IndexChoice::Prefix(of(&["d", "e"])), soon()).unwrap());
    assert_eq!(infos(&mut reader), []);
    // Again, over entries that exist by now.
    mutate(&mut writer, vec![doc("a", "red")]);
    writer.create_index(&exact(&spec()), soon()).unwrap();
    assert!(!writer.build_indexes(NOW, soon()).unwrap());
    assert_eq!(found(&mut reader, "red"), ["a"]);
}

/// A sentence of a language without spaces was one term: only the whole of it was found.
pub(super) fn words_without_spaces_are_found(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let auto = IndexSpec { tokenizer: Tokenizer::Auto, ..spec() };
    writer.create_index(&exact(&auto), soon()).unwrap();
    let texts = [
        ("ja", "東京都に行きました。iPhoneを買いました"),
        ("zh", "我们去了北京大学，天气很好"),
        ("kyoto", "京都の東"),
        ("ko", "서울에 갔습니다"),
        ("th", "ฉันไปกรุงเทพเมื่อวานนี้"),
        ("lo", "ຂ້ອຍໄປວຽງຈັນ"),
        ("km", "ខ្ញុំទៅភ្នំពេញ"),
        ("my", "ရန်ကုန်သို့သွားသည်"),
        ("hi", "मैं हिन्दी बोलता हूँ"),
        ("fr", "un Café e\u{301}troit"),
    ];
    mutate(&mut writer, texts.map(|(name, text)| doc(name, text)).to_vec());
    for (text, expected) in [
        ("東京", &["ja"][..]),
        ("京都", &["ja", "kyoto"]),
        ("都", &["ja", "kyoto"]),
        ("東京 行き", &["ja"]),
        ("東京　行き", &["ja"]),
        ("京東", &[]),
        ("東京*", &["ja"]),
        ("\"東京\" + 都に", &["ja"]),
        ("^東京", &["ja"]),
        ("^京都", &["kyoto"]),
        ("t:東京 NOT u:東京", &["ja"]),
        ("NEAR(東京 行き, 2)", &["ja"]),
        ("NEAR(東京 買, 2)", &[]),
        ("iphone", &["ja"]),
        ("iphoneを", &["ja"]),
        ("北京", &["zh"]),
        ("北京 OR 서울", &["ko", "zh"]),
        ("서울", &["ko"]),
        ("กรุงเทพ", &["th"]),
        ("ກ", &[]),
        ("ວຽງຈັນ", &["lo"]),
        ("ភ្នំពេញ", &["km"]),
        ("ရန်ကုန်", &["my"]),
        ("हिन्दी", &["hi"]),
        ("ह", &[]),
        ("हि*", &["hi"]),
        ("cafe étroit", &["fr"]),
    ] {
        assert_eq!(found(&mut reader, text), expected, "{text}");
    }
    let highlight =
        Highlight { before: "<b>".into(), after: "</b>".into(), ellipsis: "…".into(), terms: 6 };
    let marked = Search { highlight: Some(highlight), ..query("iPhone OR 行き") };
    let marked = search(&mut reader, &marked, 10, NOW).unwrap();
    assert_eq!(marked.snippets, [[(0, "…<b>行き</b>ました。<b>iPhone</b>…".to_owned())]]);
    // The same text again changes nothing, another one does.
    mutate(
        &mut writer,
        vec![doc("ja", "東京都に行きました。iPhoneを買いました"), doc("zh", "上海")],
    );
    assert_eq!(found(&mut reader, "東京"), ["ja"]);
    assert_eq!(found(&mut reader, "北京"), [""; 0]);
    assert_eq!(found(&mut reader, "上海"), ["zh"]);
}

/// A term with fewer characters than a trigram finds nothing, instead of what the other terms find.
pub(super) fn trigrams_find_parts_of_words(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let trigram = IndexSpec { tokenizer: Tokenizer::Trigram, prefix_lengths: vec![], ..spec() };
    writer.create_index(&exact(&trigram), soon()).unwrap();
    let texts = [("a", "Motorräder"), ("b", "motor boat"), ("c", "東京都に行きました")];
    mutate(&mut writer, texts.map(|(name, text)| doc(name, text)).to_vec());
    for (text, expected) in [
        ("otor", &["a", "b"][..]),
        ("ORRAD", &["a"]),
        ("\"or boa\"", &["b"]),
        ("mot*", &["a", "b"]),
        ("東京都", &["c"]),
        ("東京", &[]),
        ("oto AND or", &[]),
        ("oto NOT or", &["a", "b"]),
    ] {
        assert_eq!(found(&mut reader, text), expected, "{text}");
    }
    let highlight =
        Highlight { before: "<".into(), after: ">".into(), ellipsis: "…".into(), terms: 9 };
    let marked = Search { highlight: Some(highlight), ..query("orrad") };
    let marked = search(&mut reader, &marked, 10, NOW).unwrap();
    assert_eq!(marked.snippets, [[(0, "Mot<orräd>er".to_owned())]]);
}

/// An application that names no tokenizer finds the index that it has made with an earlier version.
pub(super) fn an_index_of_the_earlier_default_is_kept(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let auto = IndexSpec { tokenizer: Tokenizer::Auto, ..spec() };
    let unnamed =
        |spec: &IndexSpec, replace| IndexRequest { spec: spec.clone(), is_default: true, replace };
    writer.create_index(&exact(&spec()), soon()).unwrap();
    for replace in [false, true] {
        let made = writer.create_index(&unnamed(&auto, replace), soon()).unwrap();
        assert_eq!(made.spec, spec());
    }
    // Who names it gets it.
    let refused = writer.create_index(&exact(&auto), soon()).unwrap_err();
    assert!(refused.message().contains("differs in its tokenizer"), "{refused}");
    let replaced = IndexRequest { replace: true, ..exact(&auto) };
    assert_eq!(writer.create_index(&replaced, soon()).unwrap().spec, auto);
    assert_eq!(writer.create_index(&unnamed(&auto, false), soon()).unwrap().spec, auto);
    // Another index is none of an earlier default.
    let porter = IndexSpec { tokenizer: Tokenizer::Porter, ..spec() };
    let replaced = IndexRequest { replace: true, ..exact(&porter) };
    writer.create_index(&replaced, soon()).unwrap();
    assert!(writer.create_index(&unnamed(&auto, false), soon()).is_err());
    assert_eq!(writer.create_index(&unnamed(&auto, true), soon()).unwrap().spec, auto);
    assert_eq!(infos(&mut reader).len(), 1);
}

/// The largest queries that the parser accepts must work in FTS5.
pub(super) fn the_largest_queries_are_executed(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    writer.create_index(&exact(&spec()), soon()).unwrap();
    mutate(&mut writer, vec![doc("a", "a b c")]);
    let deep = QUERY_DEPTH_MAX;
    let nested = "a OR b AND c NOT ({t u}:(".repeat(deep / 2) + "x" + &"))".repeat(deep / 2);
    let columns = "a OR b AND c NOT -t:(".repeat(deep)
        + "a OR b AND c NOT d t:NEAR(a b + c)"
        + &")".repeat(deep);
    let terms = QUERY_TERMS_MAX;
    let nots = "a".to_owned() + &" NOT x".repeat(terms - 1);
    let [flat, ors, ands, phrase] =
        [" ", " OR ", " AND ", " + "].map(|between| vec!["a"; terms].join(between));
    for text in [nested, columns, nots, flat, ors, ands] {
        assert_eq!(found(&mut reader, &text), ["a"], "{text}");
    }
    for text in [phrase.as_str(), "\"\"", "\"!?\"", "NEAR(a \"\", 0)", "-{t u}:a"] {
        found(&mut reader, text);
    }
}
