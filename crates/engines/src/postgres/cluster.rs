//! The tables that openkv servers share: their catalog, the key of their tokens, and who leads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cells::{Cells, first};
use super::line::Call;
use super::pool::Pool;
use super::schema;
use super::url::Server;
use crate::cluster::{Cluster, ClusterDatabase, ClusterPoll, ClusterProperties, SharedCatalog};
use openkv_core::model::{
    BUSY_TIMEOUT_MS_DEFAULT, CLUSTER_POLL_MS, Error, POSTGRES_EMPTY_STEP_ROWS, Result,
};

/// The only row of `openkv.cluster`. The first server creates it.
const BEGIN: &str = "\
INSERT INTO openkv.cluster (id, signing_key) VALUES (1, $1) ON CONFLICT (id) DO NOTHING";

const KEY: &str = "SELECT signing_key FROM openkv.cluster WHERE id = 1";

const CATALOG: &str = "SELECT revision, catalog FROM openkv.cluster WHERE id = 1";

const REPLACE: &str = "\
UPDATE openkv.cluster SET revision = revision + 1, catalog = $2 WHERE id = 1 AND revision = $1 \
RETURNING revision";

/// The leaders stand in rows after the first, which has none. So the answer has the time and the
/// revision also if nobody leads.
const POLL: &str = "\
SELECT c.revision, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8, NULL::bytea, NULL::bytea \
FROM openkv.cluster AS c WHERE c.id = 1 \
UNION ALL SELECT 0, 0, d.name, s.name FROM openkv.servers AS s \
JOIN openkv.databases AS d ON d.leader = s.id WHERE s.lease_until > clock_timestamp()";

const LEADER: &str = "\
SELECT s.name FROM openkv.databases AS d CROSS JOIN LATERAL (SELECT name FROM openkv.servers \
WHERE id = d.leader AND lease_until > clock_timestamp() LIMIT 1) AS s WHERE d.name = $1";

const DATABASES: &str = "\
SELECT d.name, d.epoch, d.version, s.name, \
(extract(epoch FROM s.lease_until - clock_timestamp()) * 1000)::int8 \
FROM openkv.databases AS d LEFT JOIN openkv.servers AS s ON s.id = d.leader ORDER BY d.id";

/// A leader that is under way with a commit fails by the new epoch.
const DEPOSE: &str = "\
WITH deposed AS (UPDATE openkv.databases SET epoch = epoch + 1, leader = NULL WHERE name = $1 \
RETURNING id, epoch, version) \
INSERT INTO openkv.epochs (db, epoch, start) SELECT id, epoch, version FROM deposed RETURNING db";

/// Each deletes some rows of the database `$1`, at most `$2`.
const EMPTY: [&str; 10] = [
    "DELETE FROM openkv.entries WHERE db = $1 AND k = ANY (ARRAY(\
     SELECT k FROM openkv.entries WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.expiries WHERE db = $1 AND k = ANY (ARRAY(\
     SELECT k FROM openkv.expiries WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.log WHERE db = $1 AND version = ANY (ARRAY(\
     SELECT version FROM openkv.log WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.messages WHERE db = $1 AND id = ANY (ARRAY(\
     SELECT id FROM openkv.messages WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.dead WHERE db = $1 AND id = ANY (ARRAY(\
     SELECT id FROM openkv.dead WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.segments WHERE db = $1 AND version = ANY (ARRAY(\
     SELECT version FROM openkv.segments WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.past WHERE ctid = ANY (ARRAY(\
     SELECT ctid FROM openkv.past WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.indexes WHERE db = $1 AND name = ANY (ARRAY(\
     SELECT name FROM openkv.indexes WHERE db = $1 LIMIT $2)) RETURNING 1",
    "DELETE FROM openkv.value_indexes WHERE db = $1 AND id = ANY (ARRAY(\
     SELECT id FROM openkv.value_indexes WHERE db = $1 LIMIT $2)) RETURNING 1",
    "WITH old AS MATERIALIZED (SELECT ctid AS place FROM openkv.value_entries WHERE db = $1 LIMIT $2) \
     DELETE FROM openkv.value_entries AS e USING old WHERE e.ctid = old.place RETURNING 1",
];

/// The shared state on one PostgreSQL server.
pub struct PostgresCluster {
    pool: Arc<Pool>,
}

impl PostgresCluster {
    /// Connects, and creates the tables if they are not there. With `readonly` nothing is created.
    pub fn open(server: &Server, readonly: bool) -> Result<Self> {
        let pool = Pool::of(server);
        pool.check()?;
        let mut lent = pool.lend(deadline())?;
        schema::prepare(&mut lent.session, readonly)?;
        lent.give_back();
        Ok(Self { pool })
    }

    fn query(&self, call: Call<'_>) -> Result<Vec<tokio_postgres::Row>> {
        let mut lent = self.pool.lend(deadline())?;
        let rows = lent.session.query(call);
        lent.give_back();
        rows
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT)
}

impl Cluster for PostgresCluster {
    fn properties(&self) -> ClusterProperties {
        ClusterProperties {
            place: "PostgreSQL",
            poll_ms: CLUSTER_POLL_MS,
            polls_leaders: true,
            measures_bytes: false,
            has_one_log: true,
        }
    }

    fn signing_key(&self, fresh: &[u8; 32]) -> Result<Vec<u8>> {
        self.query((BEGIN, vec![&fresh.as_slice()]))?;
        let rows = self.query((KEY, vec![]))?;
        let key: Option<&[u8]> = first("cluster", &rows)?;
        key.map(<[u8]>::to_vec).ok_or_else(|| Error::corrupt("the table openkv.cluster is empty"))
    }

    fn catalog(&self) -> Result<SharedCatalog> {
        let rows = self.query((CATALOG, vec![]))?;
        let Some(row) = rows.first() else {
            return Ok(SharedCatalog { revision: 0, text: Vec::new() });
        };
        let cells = Cells::of("cluster", row);
        Ok(SharedCatalog { revision: cells.get(0)?, text: cells.get::<&[u8]>(1)?.to_vec() })
    }

    fn poll(&self) -> Result<ClusterPoll> {
        let rows = self.query((POLL, vec![]))?;
        let mut poll = ClusterPoll { revision: 0, now_ms: Some(0), leaders: Vec::new() };
        for row in &rows {
            let cells = Cells::of("cluster", row);
            if cells.get::<Option<&[u8]>>(2)?.is_some() {
                poll.leaders.push((cells.text(2)?, cells.text(3)?));
            } else {
                (poll.revision, poll.now_ms) = (cells.get(0)?, Some(cells.get(1)?));
            }
        }
        Ok(poll)
    }

    fn replace_catalog(&self, revision: i64, text: &[u8]) -> Result<bool> {
        let rows = self.query((REPLACE, vec![&revision, &text]))?;
        Ok(!rows.is_empty())
    }

    fn leader_of(&self, database: &str) -> Result<Option<String>> {
        let rows = self.query((LEADER, vec![&database.as_bytes()]))?;
        rows.first().map(|row| Cells::of("servers", row).text(0)).transpose()
    }

    fn empty(&self, database: &str) -> Result<()> {
        let rows = self.query((DEPOSE, vec![&database.as_bytes()]))?;
        let Some(db) = first::<i64>("epochs", &rows)? else { return Ok(()) };
        for delete in EMPTY {
            while !self.query((delete, vec![&db, &POSTGRES_EMPTY_STEP_ROWS]))?.is_empty() {}
        }
        Ok(())
    }

    fn databases(&self, _served: &[String]) -> Result<Vec<ClusterDatabase>> {
        let rows = self.query((DATABASES, vec![]))?;
        let database = |row| {
            let cells = Cells::of("databases", row);
            let led = cells.get::<Option<&[u8]>>(3)?.is_some();
            Ok(ClusterDatabase {
                name: cells.text(0)?,
                epoch: Some(cells.unsigned(1)?),
                version: Some(cells.unsigned(2)?),
                leader: if led { Some((cells.text(3)?, Some(cells.get(4)?))) } else { None },
            })
        };
        rows.iter().map(database).collect()
    }
}
