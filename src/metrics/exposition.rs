//! A snapshot as Prometheus' text, format 0.0.4.

mod archives;

use prometheus::proto::{
    Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary,
};
use prometheus::{Encoder, TextEncoder};

use super::snapshot::{ArchiveFigures, Holders, Leader, MetricsSnapshot, ReplicaFigures};
use super::table::{METRICS, MetricKind};
use crate::model::{Error, Result};

/// The text of a snapshot.
///
/// # Errors
/// `Internal` if the encoder refuses it.
pub fn exposition(snapshot: &MetricsSnapshot) -> Result<String> {
    let mut text = Vec::new();
    let encoded = TextEncoder::new().encode(&families(snapshot), &mut text);
    encoded.map_err(|error| Error::internal(error.to_string()))?;
    String::from_utf8(text).map_err(|error| Error::internal(error.to_string()))
}

/// The text of a server's metrics with those of a replica, which serves these watches and feeds itself.
///
/// # Errors
/// As [`exposition`].
pub fn exposition_with_replica(
    of_server: &str,
    replica: &ReplicaFigures,
    served: Holders,
) -> Result<String> {
    let mut text = Vec::with_capacity(of_server.len() + 1024);
    for line in of_server.lines() {
        let sum = by_kind(served).into_iter().find_map(|(kind, more)| {
            let head = format!("openkv_watchers{{kind=\"{kind}\"}} ");
            let own: f64 = line.strip_prefix(&head)?.parse().ok()?;
            Some(format!("{head}{}", own + more as f64))
        });
        text.extend_from_slice(sum.as_deref().unwrap_or(line).as_bytes());
        text.push(b'\n');
    }
    let encoded = TextEncoder::new().encode(&named(of_replica(replica)), &mut text);
    encoded.map_err(|error| Error::internal(error.to_string()))?;
    String::from_utf8(text).map_err(|error| Error::internal(error.to_string()))
}

/// The text of the snapshots of several databases, and of the archivers of others, each metric with the name
/// of its database as the label `database`.
///
/// # Errors
/// As [`exposition`].
pub fn exposition_of_many(
    snapshots: &[(String, MetricsSnapshot)],
    archives: &[(String, ArchiveFigures)],
) -> Result<String> {
    let open = snapshots.iter().map(|(database, snapshot)| (database, families(snapshot)));
    let others = archives.iter().map(|(database, figures)| {
        (database, named(archives::of_archives(std::slice::from_ref(figures))))
    });
    let mut all: Vec<MetricFamily> = Vec::new();
    for (database, families) in open.chain(others) {
        for mut family in families {
            let mut metrics = family.take_metric();
            for metric in &mut metrics {
                let mut pair = LabelPair::default();
                pair.set_name("database".to_owned());
                pair.set_value(database.clone());
                let mut labels = vec![pair];
                labels.append(&mut metric.take_label());
                metric.set_label(labels);
            }
            match all.iter_mut().find(|known| known.name() == family.name()) {
                Some(known) => known.mut_metric().append(&mut metrics),
                None => {
                    family.set_metric(metrics);
                    all.push(family);
                }
            }
        }
    }
    let mut text = Vec::new();
    let encoded = TextEncoder::new().encode(&all, &mut text);
    encoded.map_err(|error| Error::internal(error.to_string()))?;
    String::from_utf8(text).map_err(|error| Error::internal(error.to_string()))
}

/// The text of an exposition in the format OpenMetrics 1.0: the family of a counter has no suffix,
/// and a line ends the text.
#[must_use]
pub fn open_metrics(exposition: &str) -> String {
    let mut text = String::with_capacity(exposition.len() + 8);
    for line in exposition.lines() {
        let described = ["# HELP ", "# TYPE "].into_iter().find_map(|begin| {
            let (name, rest) = line.strip_prefix(begin)?.split_once(' ')?;
            Some((begin, name.strip_suffix("_total").unwrap_or(name), rest))
        });
        match described {
            Some((begin, name, rest)) => {
                [begin, name, " ", rest].into_iter().for_each(|part| text.push_str(part));
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text.push_str("# EOF\n");
    text
}

type Labels<'a> = &'a [(&'a str, &'a str)];

fn families(snapshot: &MetricsSnapshot) -> Vec<MetricFamily> {
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
    if let Some(replica) = &snapshot.replica {
        all.extend(of_replica(replica));
    }
    all.extend(archives::of_archives(&snapshot.archives));
    named(all)
}

fn by_kind(of: Holders) -> [(&'static str, usize); 3] {
    [("keys", of.watches), ("feed", of.feeds), ("listener", of.listeners)]
}

/// Name and metrics.
type Family = (&'static str, Vec<Metric>);

fn of_replica(replica: &ReplicaFigures) -> Vec<Family> {
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

fn named(all: Vec<Family>) -> Vec<MetricFamily> {
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
