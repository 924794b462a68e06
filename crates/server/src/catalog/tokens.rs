//! The tokens of databases, and of the server: creating and revoking them.

use hyper::StatusCode;

use super::naming::make_token;
use super::{Catalog, Requester};
use crate::answer::Refusal;
use crate::auth::{AccessToken, Rights, TokenHash};
use crate::records::{Change, Record};
use openkv_core::model::ACCESS_TOKENS_MAX;

impl Catalog {
    /// Creates a token. Only this answer shows it: the registry keeps its hash.
    pub(crate) fn add_token(
        &self,
        name: &str,
        requester: &Requester,
        rights: Rights,
    ) -> Result<(String, AccessToken), Refusal> {
        let (token, record) = make_token(rights)?;
        let kept = record.clone();
        self.change(name, requester, |Record { tokens, .. }| {
            if tokens.len() >= ACCESS_TOKENS_MAX {
                let text = format!("Too many tokens (max {ACCESS_TOKENS_MAX}): withdraw some.");
                return Err(Refusal::new(StatusCode::CONFLICT, text));
            }
            tokens.push(kept.clone());
            Ok(())
        })?;
        tracing::info!(database = name, token = record.id, ?rights, "token made");
        Ok((token, record))
    }

    /// Revokes a token and all data-path tokens issued for it.
    pub(crate) fn withdraw_token(
        &self,
        name: &str,
        requester: &Requester,
        id: &str,
    ) -> Result<(), Refusal> {
        self.change(name, requester, |Record { tokens, .. }| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            if tokens.len() == before {
                let text = format!("The database '{name}' has no token '{id}'.");
                return Err(Refusal::new(StatusCode::NOT_FOUND, text));
            }
            Ok(())
        })?;
        tracing::info!(database = name, token = id, "token withdrawn");
        Ok(())
    }

    /// The tokens of the server.
    pub(crate) fn tokens(&self) -> Vec<AccessToken> {
        self.tokens.read().clone()
    }

    /// Whether a token is one of the server's, which may read its metrics. It is compared with each of them in
    /// constant time.
    pub(crate) fn is_token(&self, given: &TokenHash) -> bool {
        self.tokens.read().iter().filter(|token| token.hash.is(given)).count() > 0
    }

    /// Creates a token of the server, which may read its metrics.
    pub(crate) fn add_server_token(&self) -> Result<(String, AccessToken), Refusal> {
        let (token, record) = make_token(Rights::Metrics)?;
        self.change_tokens(|tokens| {
            if tokens.len() >= ACCESS_TOKENS_MAX {
                let text = format!("Too many tokens (max {ACCESS_TOKENS_MAX}): withdraw some.");
                return Err(Refusal::new(StatusCode::CONFLICT, text));
            }
            tokens.push(record.clone());
            Ok(())
        })?;
        tracing::info!(token = record.id, "token of the server made");
        Ok((token, record))
    }

    /// Revokes a token of the server.
    pub(crate) fn withdraw_server_token(&self, id: &str) -> Result<(), Refusal> {
        self.change_tokens(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            if tokens.len() == before {
                let text = format!("The server has no token '{id}'.");
                return Err(Refusal::new(StatusCode::NOT_FOUND, text));
            }
            Ok(())
        })?;
        tracing::info!(token = id, "token of the server withdrawn");
        Ok(())
    }

    fn change_tokens(
        &self,
        mut change: impl FnMut(&mut Vec<AccessToken>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if !self.is_folder() {
            return Err(Refusal::not_found());
        }
        let _changing = self.changing.lock();
        let mut changed = Vec::new();
        self.keep(|| {
            changed = self.tokens();
            change(&mut changed)?;
            Ok(Change::Tokens(changed.clone()))
        })?;
        *self.tokens.write() = changed;
        Ok(())
    }
}
