//! Every metric: its place in the object, its name in the text and its value, declared here once. `npm run generate`
//! writes the tables of the page about metrics.

mod archives;

use prometheus::proto::{
    Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary,
};

pub(super) use self::archives::of_archives;
use super::snapshot::{
    BucketFigures, BucketRequests, Holders, Leader, MetricsSnapshot, ReplicaFigures,
};

/// The type of a metric in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A distribution.
    Summary,
}

/// The databases that have a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricGroup {
    /// Every database.
    Every,
    /// One on PostgreSQL.
    Postgres,
    /// One in an object store.
    Bucket,
    /// One with a replica.
    Replica,
    /// One that is archived.
    Archive,
}

/// A metric.
#[derive(Debug)]
pub struct DescribedMetric {
    /// The databases that have it.
    pub group: MetricGroup,
    /// Its name in the text, without `openkv_`.
    pub name: &'static str,
    /// Its labels.
    pub labels: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its description in the text.
    pub help: &'static str,
    /// Where the object has it.
    pub object: &'static str,
    /// What the page says about it.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($group:ident {
        $($kind:ident $name:literal ($labels:literal), $help:literal, $object:literal, $meaning:literal;)+
    })+) => {
        /// All metrics, in the order of the page.
        pub const METRICS: &[DescribedMetric] = &[$($(DescribedMetric {
            group: MetricGroup::$group,
            name: $name,
            labels: $labels,
            kind: MetricKind::$kind,
            help: $help,
            object: $object,
            meaning: $meaning,
        }),+),+];
    };
}

metrics! {
    Every {
        Counter "operations_total" ("operation"), "Operations answered.",
            "`operations[name].count`",
            "operations that were answered, errors included";
        Counter "operation_errors_total" ("operation"), "Operations answered with an error.",
            "`operations[name].errors`",
            "operations that ended with an error; a failed check is no error";
        Summary "operation_duration_seconds" ("operation"), "Time of operations; reads are sampled.",
            "`operations[name].latency`",
            "quantiles to two digits; ms in the object, seconds in the text";
        Counter "commits_total" (""), "Writes that happened.",
            "`commits`",
            "writes that were committed";
        Counter "conflicts_total" (""), "Writes whose checks did not hold.",
            "`conflicts`",
            "writes whose check failed";
        Counter "rejections_total" (""), "Writes that were refused or failed.",
            "`rejections`",
            "writes that were refused or failed";
        Counter "transaction_failures_total" (""), "Transactions that failed as a whole.",
            "`transactions.failures`",
            "transactions that failed as a whole";
        Summary "transaction_writes" (""), "Writes that one transaction executed.",
            "`transactions.writes`",
            "writes that shared one transaction (group commit)";
        Gauge "queue_messages" ("queue,state"), "Messages by queue and state.",
            "`queues[name]`",
            "messages `pending`, `delayed`, `processing`, `dead`";
        Gauge "watchers" ("kind"), "Watches, feeds and listeners of this process.",
            "`watches`, `feeds`, `listeners`",
            "watches over `keys`, change feeds (`feed`) and queue listeners (`listener`) that are open in this process";
        Gauge "index_documents" ("index"), "Documents in a search index.",
            "`indexes[name].documents`",
            "documents in a search index";
        Gauge "index_building" ("index"), "Whether a search index is being built.",
            "`indexes[name].building`",
            "1 while it is being built";
        Gauge "database_bytes" (""), "Bytes of the database.",
            "`databaseBytes`",
            "as in `kv.stats()`";
        Gauge "wal_bytes" (""), "Bytes of the write-ahead log.",
            "`walBytes`",
            "the log beside the file";
        Gauge "background_failing" ("part"), "Whether a background part fails.",
            "`failing` of [`kv.stats()`](operating.md)",
            "1 while a background part fails and tries again, else 0";
        Counter "page_cache_hits_total" (""), "Pages that were in memory.",
            "`cache.hits`",
            "reads of pages that the page caches of SQLite's connections had";
        Counter "page_cache_misses_total" (""), "Pages that had to be read.",
            "`cache.misses`",
            "reads of pages that they had not";
        Gauge "page_cache_hit_ratio" (""), "Share of pages that were in memory.",
            "`cache.hitRate`",
            "the ratio of hits";
    }
    Postgres {
        Gauge "lag_commits" (""), "Commits that this process has not looked at yet.",
            "`lagCommits`",
            "commits that this process has not looked at yet; while a watch, a feed or a listener is open";
        Gauge "leader_leading" (""), "Whether it leads.",
            "`leader.leading`",
            "whether this process [leads](postgres.md#leading) the database now; `leader` is there once it has begun to lead";
        Gauge "leader_epoch" (""), "Epoch of the last lead.",
            "`leader.epoch`",
            "the epoch of its last lead";
        Counter "leader_epochs_total" (""), "Epochs begun.",
            "`leader.epochs`",
            "epochs that it has begun: one for each lead, and one for each lost connection";
        Counter "leader_batches_begun_total" (""), "Batches sent.",
            "`leader.batches.begun`",
            "batches that were sent, each time";
        Counter "leader_batch_writes_total" (""), "Writes in batches.",
            "`leader.batches.writes`",
            "the writes in them";
        Counter "leader_batches_durable_total" (""), "Batches durable.",
            "`leader.batches.durable`",
            "batches that are durable";
        Counter "leader_decisions_discarded_total" (""), "Decisions ahead that were discarded.",
            "`leader.batches.discarded`",
            "decisions that were discarded, because a batch before them has failed or was in doubt";
        Gauge "leader_batches_in_flight" (""), "Batches in flight.",
            "`leader.batches.inFlight`",
            "batches in flight now";
        Gauge "leader_depth" (""), "Batches that may be in flight.",
            "`leader.depth`",
            "batches that may be in flight at present, as measured";
        Gauge "leader_waiting_writes" (""), "Writes without an answer.",
            "`leader.waiting.writes`",
            "writes in the leader's batches without an answer";
        Gauge "leader_waiting_bytes" (""), "Bytes of these.",
            "`leader.waiting.bytes`",
            "their bytes";
        Counter "leader_refused_writes_total" (""), "Writes refused.",
            "`leader.refused`",
            "writes that were refused, because too many waited";
    }
    Bucket {
        Counter "bucket_requests_total" ("kind"), "Requests to the object store.",
            "`bucket.requests[kind]`",
            "requests to the [object store](bucket.md#cost) that this process has made: `get`, `put` (also parts of snapshots), `list` (pages) and `delete`; repetitions by the client of the store are not counted";
        Counter "bucket_bytes_total" ("kind"), "Bytes of objects.",
            "`bucket.bytes[kind]`",
            "bytes of the objects that were read (`get`) and sent (`put`)";
    }
    Replica {
        Gauge "replica_state" ("state"), "What the replica does.",
            "`replica.state`",
            "1 for the present one of `bootstrapping`, `following`, `disconnected`, `failed`";
        Gauge "replica_usable" (""), "Whether reads are answered from the replica.",
            "`replica.usable`",
            "whether reads are answered from it";
        Gauge "replica_lag_seconds" (""), "How long ago the replica had everything.",
            "`replica.lagMs`",
            "the time since it had everything; missing until then";
        Gauge "replica_version" (""), "The commit up to which the replica has every change.",
            "`replica.version`",
            "the number of the commit up to which it has every change";
        Counter "replica_copies_total" (""), "Complete copies of the database.",
            "`replica.copies`",
            "complete copies since it was opened";
    }
    Archive {
        Gauge "archive_state" ("state"), "What the archiver does.",
            "`archives[n].state`",
            "1 for the present one of `starting`, `waiting`, `running`, `failing`, `stopped` (by an error); at `/metrics` of a server also `idle`: closed, and everything is archived";
        Gauge "archive_lag_seconds" (""), "How long ago the archive had everything.",
            "`archives[n].lagMs`",
            "the time since the archive had every commit, or since the archiver began; up to half a second if all is well";
        Counter "archive_objects_total" (""), "Objects written to the archive.",
            "`archives[n].objects`",
            "objects written, with snapshots";
        Counter "archive_bytes_total" (""), "Bytes written to the archive.",
            "`archives[n].bytes`",
            "their bytes";
        Counter "archive_snapshots_total" (""), "Snapshots taken.",
            "`archives[n].snapshots`",
            "snapshots";
        Gauge "archive_snapshot_timestamp_seconds" (""), "When the newest snapshot was taken.",
            "`archives[n].snapshotMs`",
            "when the newest one was taken";
        Counter "archive_failures_total" (""), "Attempts that have failed.",
            "`archives[n].failures`",
            "attempts that have failed";
        Counter "archive_gaps_total" (""), "How often the log no longer reached back to the archive.",
            "`archives[n].gaps`",
            "how often commits were lost for restores, because the log no longer had them";
        Counter "archive_pruned_objects_total" (""), "Objects removed.",
            "`archives[n].pruned`",
            "objects that the retention has removed";
    }
}

type Labels<'a> = &'a [(&'a str, &'a str)];

pub(super) fn families(snapshot: &MetricsSnapshot) -> Vec<MetricFamily> {
    let operations = || snapshot.operations.iter();
    let by_operation = |value: fn(&super::Operations) -> u64| {
        operations().map(move |(name, of)| counter(&[("operation", name)], value(of))).collect()
    };
    let seconds = |ms: f64| ms / 1e3;
    let durations = operations().filter_map(|(name, of)| {
        let at = of.latency.as_ref()?;
        let quantiles = [at.p50_ms, at.p90_ms, at.p99_ms].map(seconds);
        Some(summary(&[("operation", name)], at.samples, seconds(at.sum_ms), quantiles))
    });
    let group = snapshot.transactions.writes.iter();
    let groups = group.map(|of| summary(&[], of.count, of.sum, [of.p50, of.p90, of.p99]));
    let depths = snapshot.queues.iter().flat_map(|(queue, of)| {
        [
            ("pending", of.pending),
            ("delayed", of.delayed),
            ("processing", of.processing),
            ("dead", of.dead),
        ]
        .map(|(state, messages)| gauge(&[("queue", queue), ("state", state)], messages as f64))
    });
    let documents =
        snapshot.indexes.iter().map(|(name, of)| gauge(&[("index", name)], of.documents as f64));
    let flag = |is: bool| f64::from(u8::from(is));
    let building =
        snapshot.indexes.iter().map(|(name, of)| gauge(&[("index", name)], flag(of.building)));
    let holders = by_kind(snapshot.holders);
    let holders = holders.map(|(kind, count)| gauge(&[("kind", kind)], count as f64));
    let parts = snapshot.parts.iter();
    let parts = parts.map(|(part, fails)| gauge(&[("part", part)], flag(*fails)));
    let one = |value: u64| vec![counter(&[], value)];
    let level = |value: f64| vec![gauge(&[], value)];
    let rate = snapshot.cache.hit_rate.map_or(Vec::new(), level);
    let (database, wal) = (snapshot.sizes.database_bytes, snapshot.sizes.wal_bytes);
    let of_leader = |value: fn(&Leader) -> u64| {
        snapshot.leader.iter().map(|of| gauge(&[], value(of) as f64)).collect()
    };
    let by_leader = |value: fn(&Leader) -> u64| {
        snapshot.leader.iter().map(|of| counter(&[], value(of))).collect()
    };
    let lag = snapshot.lag_commits.map_or(Vec::new(), |lag| level(lag as f64));
    let mut all: Vec<Family> = vec![
        ("operations_total", by_operation(|of| of.count)),
        ("operation_errors_total", by_operation(|of| of.errors)),
        ("operation_duration_seconds", durations.collect()),
        ("commits_total", one(snapshot.commits)),
        ("conflicts_total", one(snapshot.conflicts)),
        ("rejections_total", one(snapshot.rejections)),
        ("transaction_failures_total", one(snapshot.transactions.failures)),
        ("transaction_writes", groups.collect()),
        ("queue_messages", depths.collect()),
        ("watchers", holders.to_vec()),
        ("index_documents", documents.collect()),
        ("index_building", building.collect()),
        ("database_bytes", level(database as f64)),
        ("wal_bytes", level(wal as f64)),
        ("background_failing", parts.collect()),
        ("page_cache_hits_total", one(snapshot.cache.hits)),
        ("page_cache_misses_total", one(snapshot.cache.misses)),
        ("lag_commits", lag),
        ("leader_leading", of_leader(|of| u64::from(of.leading))),
        ("leader_epoch", of_leader(|of| of.epoch)),
        ("leader_epochs_total", by_leader(|of| of.epochs)),
        ("leader_batches_begun_total", by_leader(|of| of.batches.begun)),
        ("leader_batches_durable_total", by_leader(|of| of.batches.durable)),
        ("leader_batch_writes_total", by_leader(|of| of.batches.writes)),
        ("leader_decisions_discarded_total", by_leader(|of| of.batches.discarded)),
        ("leader_batches_in_flight", of_leader(|of| of.batches.in_flight)),
        ("leader_depth", of_leader(|of| of.depth)),
        ("leader_waiting_writes", of_leader(|of| of.waiting.writes)),
        ("leader_waiting_bytes", of_leader(|of| of.waiting.bytes)),
        ("leader_refused_writes_total", by_leader(|of| of.refused)),
        ("page_cache_hit_ratio", rate),
    ];
    if let Some(bucket) = &snapshot.bucket {
        all.extend(of_bucket(bucket));
    }
    if let Some(replica) = &snapshot.replica {
        all.extend(of_replica(replica));
    }
    all.extend(of_archives(&snapshot.archives));
    named(all)
}

pub(super) fn by_kind(of: Holders) -> [(&'static str, usize); 3] {
    [("keys", of.watches), ("feed", of.feeds), ("listener", of.listeners)]
}

/// Name and metrics.
pub(super) type Family = (&'static str, Vec<Metric>);

fn of_bucket(bucket: &BucketFigures) -> Vec<Family> {
    let BucketFigures { requests, bytes } = bucket;
    let BucketRequests { get, put, list, delete } = *requests;
    let of_kind = |(kind, value): (&str, u64)| counter(&[("kind", kind)], value);
    let requests = [("get", get), ("put", put), ("list", list), ("delete", delete)].map(of_kind);
    let bytes = [("get", bytes.get), ("put", bytes.put)].map(of_kind);
    vec![("bucket_requests_total", requests.into()), ("bucket_bytes_total", bytes.into())]
}

pub(super) fn of_replica(replica: &ReplicaFigures) -> Vec<Family> {
    let ReplicaFigures { state, usable, lag_ms, version, copies } = replica;
    let is = |one: &str| f64::from(u8::from(one == *state));
    let states = REPLICA_STATES.map(|one| gauge(&[("state", one)], is(one)));
    let lag = lag_ms.map(|lag_ms| gauge(&[], lag_ms / 1e3));
    let usable = gauge(&[], f64::from(u8::from(*usable)));
    vec![
        ("replica_state", states.to_vec()),
        ("replica_usable", vec![usable]),
        ("replica_lag_seconds", lag.into_iter().collect()),
        ("replica_version", vec![gauge(&[], *version as f64)]),
        ("replica_copies_total", vec![counter(&[], *copies)]),
    ]
}

/// The states of a replica, as `kv.replica.status()` has them.
const REPLICA_STATES: [&str; 4] = ["bootstrapping", "following", "disconnected", "failed"];

pub(super) fn named(all: Vec<Family>) -> Vec<MetricFamily> {
    let family = |(name, metrics): Family| {
        let described = METRICS.iter().find(|metric| metric.name == name)?;
        // The encoder takes no family without a metric.
        if metrics.is_empty() {
            return None;
        }
        let mut family = MetricFamily::default();
        family.set_name(format!("openkv_{name}"));
        family.set_help(described.help.to_owned());
        family.set_field_type(match described.kind {
            MetricKind::Counter => MetricType::COUNTER,
            MetricKind::Gauge => MetricType::GAUGE,
            MetricKind::Summary => MetricType::SUMMARY,
        });
        family.set_metric(metrics);
        Some(family)
    };
    all.into_iter().filter_map(family).collect()
}

fn labelled(labels: Labels<'_>) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

fn counter(labels: Labels<'_>, value: u64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value as f64);
    let mut metric = labelled(labels);
    metric.set_counter(counter);
    metric
}

fn gauge(labels: Labels<'_>, value: f64) -> Metric {
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    let mut metric = labelled(labels);
    metric.set_gauge(gauge);
    metric
}

fn summary(labels: Labels<'_>, count: u64, sum: f64, [p50, p90, p99]: [f64; 3]) -> Metric {
    let quantile = |(at, value)| {
        let mut quantile = Quantile::default();
        quantile.set_quantile(at);
        quantile.set_value(value);
        quantile
    };
    let mut summary = Summary::default();
    summary.set_sample_count(count);
    summary.set_sample_sum(sum);
    summary.set_quantile([(0.5, p50), (0.9, p90), (0.99, p99)].map(quantile).to_vec());
    let mut metric = labelled(labels);
    metric.set_summary(summary);
    metric
}
