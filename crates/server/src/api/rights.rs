//! What the token of a request may do, for a client that would otherwise have to try.

use axum::Extension;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::json;
use super::problem::Answered;
use crate::auth::Rights;

/// The rights of a token on the database.
#[derive(Serialize, ToSchema)]
#[schema(as = Rights)]
pub(super) struct RightsBody {
    /// Whether it may write: false for a token that reads, and for a database that is read-only.
    write: bool,
}

/// Tells whether the token may write.
#[utoipa::path(get, path = "/rights", tag = "operation", operation_id = "rights",
    responses((status = 200, description = "The rights of the token.", body = RightsBody)))]
pub(super) async fn rights(client: Extension<Admitted>) -> Answered {
    let allowed = client.database.allows(client.grant.rights, Rights::Write).is_ok();
    let write = allowed && !client.database.is_readonly();
    json(&RightsBody { write })
}
