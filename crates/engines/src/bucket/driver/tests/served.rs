//! The databases of servers: who leads them, and what the servers share.

use super::*;
use crate::Leadership;
use crate::bucket::BucketCluster;
use crate::cluster::Cluster as _;

const OWN: &str = "https://a.example.com";

/// A database of a server. Each test has a place of its own, because processes share what they see of one.
fn served(store: &Arc<Store>, test: &str, server: &str) -> Process {
    let options = BucketOptions {
        url: format!("s3://bucket/{test}"),
        cache: None,
        lead: LeadMode::Served,
        eventual: false,
        advertise: Some(server.to_owned()),
    };
    let objects = Objects { target: Target::over(store.clone(), "test") };
    let (local, lead, driver) = BucketEngine::begin(&options, objects, TIMING).unwrap();
    Process { local, lead, driver }
}

/// A write, while the driver works.
fn add_with(process: &mut Process) -> Result<()> {
    let (lead, local) = (process.lead.clone(), process.local.clone());
    std::thread::scope(|scope| {
        let adding = scope.spawn(move || {
            let mut writer = BucketWriter::new(local, lead);
            let deadline = Instant::now() + Duration::from_secs(30);
            let writes = vec![write(vec![], vec![sum("n", 1)])];
            writer.apply(Work { writes, durable: true, ..Work::default() }, 1_000_000, deadline)
        });
        while !adding.is_finished() {
            process.driver.round();
        }
        adding.join().unwrap().map(drop)
    })
}

#[test]
fn a_server_leads_from_its_first_write_on() {
    let store = Arc::new(Store::default());
    let mut process = served(&store, "first-write", OWN);
    process.driver.round();
    // Neither its reads nor its timed work take the lead.
    assert_eq!(process.lead.leadership(), Leadership::Follows);
    let mut writer = process.writer();
    let timed = writer.apply(Work::default(), 1_000_000, Instant::now() + Duration::from_secs(30));
    assert_eq!(timed.unwrap_err().kind(), Kind::Unavailable);
    process.driver.round();
    assert!(store.requests("PUT lease.json").is_empty());
    add_with(&mut process).unwrap();
    assert_eq!(process.lead.leadership(), Leadership::Leads);
    let lease = process.lead.objects.lease().unwrap().unwrap().lease;
    assert_eq!((lease.name.as_str(), lease.url.as_deref()), (OWN, Some(OWN)));
}

#[test]
fn a_watch_of_a_server_takes_a_lead_that_nobody_has() {
    let store = Arc::new(Store::default());
    let mut process = served(&store, "watch", OWN);
    let watch = process.lead.listen(Box::new(|_| {}));
    process.driver.round();
    assert_eq!(process.lead.leadership(), Leadership::Leads);
    drop(watch);
}

/// A caller that has looked it up knows the leader's address, so it need not wait for the lead.
#[test]
fn a_write_is_refused_at_once_while_another_server_leads() {
    let store = Arc::new(Store::default());
    let mut one = served(&store, "refused", OWN);
    add_with(&mut one).unwrap();
    let mut two = served(&store, "refused", "https://b.example.com");
    let error = add_with(&mut two).unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().contains(OWN), "{error}");
    one.driver.release().unwrap();
    // Each call looks again, however short the time since the last look.
    add_with(&mut two).unwrap();
    assert_eq!(two.count(), 2);
    let error = add_with(&mut one).unwrap_err();
    assert!(error.message().contains("https://b.example.com"), "{error}");
}

#[test]
fn a_database_that_cannot_go_on_has_ended() {
    let store = Arc::new(Store::default());
    let process = served(&store, "ended", OWN);
    process.lead.state.lock().failed = Some(Error::closed());
    assert_eq!(process.lead.leadership(), Leadership::Ended);
}

fn cluster(store: &Arc<Store>) -> BucketCluster {
    let target = Target::over(store.clone(), "test");
    BucketCluster::over("s3://bucket/servers", target, LEASE_MS)
}

#[test]
fn the_first_server_makes_the_key_of_all() {
    let store = Arc::new(Store::default());
    let (one, two) = (cluster(&store), cluster(&store));
    one.check(false).unwrap();
    assert_eq!(two.check(true).unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(one.signing_key(&[7; 32]).unwrap(), [7; 32]);
    two.check(true).unwrap();
    assert_eq!(two.signing_key(&[8; 32]).unwrap(), [7; 32]);
}

#[test]
fn a_catalog_is_replaced_only_by_one_that_was_made_from_it() {
    let store = Arc::new(Store::default());
    let (one, two) = (cluster(&store), cluster(&store));
    assert_eq!(one.replace_catalog(0, b"{}"), Ok(false), "no server has begun");
    one.signing_key(&[7; 32]).unwrap();
    assert_eq!(one.replace_catalog(0, br#"{"a":1}"#), Ok(true));
    assert_eq!(two.replace_catalog(0, br#"{"b":1}"#), Ok(false));
    // The store has stored it before the answer was lost.
    store.fail("PUT catalog.json", Fault::Lost);
    assert_eq!(two.replace_catalog(1, br#"{"b":1}"#), Ok(true));
    store.fail("PUT catalog.json", Fault::Refused);
    assert_eq!(two.replace_catalog(2, b"{}").unwrap_err().kind(), Kind::Unavailable);
    let catalog = one.catalog().unwrap();
    assert_eq!((catalog.revision, catalog.text.as_slice()), (2, br#"{"b":1}"#.as_slice()));
    for _ in 0..2 {
        let polled = one.poll().unwrap();
        assert_eq!((polled.revision, polled.now_ms, polled.leaders.len()), (2, None, 0));
    }
}

#[test]
fn a_store_without_conditions_is_refused_for_servers() {
    for is_new in [true, false] {
        let store = Arc::new(Store::default());
        let cluster = cluster(&store);
        if is_new {
            // The creation itself.
            store.fail("PUT catalog.json", Fault::Unconditional);
        } else {
            cluster.signing_key(&[7; 32]).unwrap();
        }
        store.fail("PUT catalog.json", Fault::Unconditional);
        let error = cluster.signing_key(&[7; 32]).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
    }
}

#[test]
fn the_leader_of_a_database_is_the_server_that_holds_its_lease() {
    let store = Arc::new(Store::default());
    let cluster = cluster(&store);
    assert_eq!(cluster.leader_of("x"), Ok(None));
    let put = |text: &str| {
        let target = Target::over(store.clone(), "test");
        let found = target.versioned("databases/x/lease.json").unwrap();
        let version = found.map(|(_, version)| version);
        target.replace("databases/x/lease.json", text.into(), version.as_ref()).unwrap().unwrap();
        // Older than what a server may know.
        std::thread::sleep(Duration::from_millis(openkv_core::model::BUCKET_LEADER_AGE_MS_MAX));
    };
    put(r#"{"id":"1","name":"a","beat":1,"released":false,"url":"https://a.example.com"}"#);
    assert_eq!(cluster.leader_of("x"), Ok(Some(OWN.to_owned())));
    let polled = cluster.poll().unwrap();
    assert_eq!(polled.leaders, [("x".to_owned(), OWN.to_owned())]);
    let found = cluster.databases(&["x".to_owned(), "y".to_owned()]).unwrap();
    let leaders: Vec<_> = found.into_iter().map(|database| database.leader).collect();
    assert_eq!(leaders, [Some((OWN.to_owned(), None)), None]);
    put(r#"{"id":"1","name":"a","beat":2,"released":true,"url":"https://a.example.com"}"#);
    assert_eq!(cluster.leader_of("x"), Ok(None));
    // A process that is no server has no address.
    put(r#"{"id":"2","name":"process 1","beat":3,"released":false}"#);
    assert_eq!(cluster.leader_of("x"), Ok(None));
}

#[test]
fn a_dropped_database_is_not_created_again() {
    let store = Arc::new(Store::default());
    let cluster = cluster(&store);
    let target = Target::over(store.clone(), "test");
    for name in ["openkv.json", "lease.json", "log/1"] {
        target.create(&format!("databases/x/{name}"), b"{}".to_vec()).unwrap();
    }
    cluster.empty("x").unwrap();
    let left = target.list("databases").unwrap();
    assert_eq!(left, [("databases/x/openkv-dropped.json".to_owned(), 2)]);
}

#[test]
fn servers_take_no_place_of_others() {
    let store = Arc::new(Store::default());
    let target = Target::over(store.clone(), "test");
    let cluster = cluster(&store);
    target.create("photo.jpg", b"x".to_vec()).unwrap();
    let error = cluster.check(false).unwrap_err();
    assert!(error.message().contains("photo.jpg"), "{error}");
    target.create("openkv.json", b"{}".to_vec()).unwrap();
    let error = cluster.check(false).unwrap_err();
    assert!(error.message().contains("is one database"), "{error}");
    target.create("catalog.json", br#"{"openkv":2}"#.to_vec()).unwrap();
    assert_eq!(cluster.check(false).unwrap_err().kind(), Kind::Unsupported);
}
