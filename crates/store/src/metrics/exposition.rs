//! A snapshot as Prometheus' text, format 0.0.4.

use prometheus::proto::{LabelPair, MetricFamily};
use prometheus::{Encoder, TextEncoder};

use super::families::{by_kind, families, named, of_archives, of_replica};
use super::snapshot::{ArchiveFigures, Holders, MetricsSnapshot, ReplicaFigures};
use openkv_core::model::{Error, Result};

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
pub fn exposition_of_many(
    snapshots: &[(String, MetricsSnapshot)],
    archives: &[(String, ArchiveFigures)],
) -> Result<String> {
    let open = snapshots.iter().map(|(database, snapshot)| (database, families(snapshot)));
    let others = archives
        .iter()
        .map(|(database, figures)| (database, named(of_archives(std::slice::from_ref(figures)))));
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
