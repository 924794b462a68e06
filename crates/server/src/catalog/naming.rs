//! Names, ids and first tokens of databases.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::answer::Refusal;
use crate::auth::{self, AccessToken, Rights, TokenHash};
use crate::clock::now_ms;
use crate::records::is_name;
use openkv_core::model::{DATABASE_NAME_CHARS_MAX, Result};

pub(super) fn make_token(rights: Rights) -> Result<(String, AccessToken)> {
    let token = auth::new_token()?;
    let id: [u8; 6] = auth::random()?;
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let record = AccessToken { id, rights, hash: TokenHash::of(&token), created_ms: now_ms() };
    Ok((token, record))
}

/// A name is an unescaped part of URLs, and must differ from the server's own paths.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    if is_name(name) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "The name of a database has 1 to {DATABASE_NAME_CHARS_MAX} of a-z, 0-9, - and _, begins with \
         a letter or digit, and is not v1, v2, healthz or readyz: '{name}' given."
    )))
}

/// The UUID of a file that is served by itself. It depends only on the path.
pub(super) fn id_of(path: &std::path::Path) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(path.as_os_str().as_encoded_bytes()).into();
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(digest) {
        *place = byte;
    }
    Builder::from_random_bytes(bytes).into_uuid()
}
