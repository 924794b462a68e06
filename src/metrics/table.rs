//! Every metric of the text, with its place in the object: declared here once. `npm run generate` writes the tables of
//! the page about metrics.

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
        Counter "rejections_total" (""), "Writes that could not be carried out.",
            "`rejections`",
            "writes that were refused or failed";
        Counter "transaction_failures_total" (""), "Transactions that failed as a whole.",
            "`transactions.failures`",
            "transactions that failed as a whole";
        Summary "transaction_writes" (""), "Writes carried out in one transaction.",
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
            "reads of pages that SQLite's own page caches had";
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
