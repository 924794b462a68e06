//! The OpenAPI document that a server answers, made for the first request of the process: all servers with the
//! same paths have the same.

use std::sync::OnceLock;

use hyper::StatusCode;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::media::Form;
use super::page::Page;
use super::{BASE, BASE_IN_FOLDER};
use crate::answer::{Answer, answer, whole};

/// The document of a server of one file: see `description`.
const OF_FILE: &str = include_str!("openapi.json");

/// The text of a document, and its page.
pub(super) struct Document {
    text: Bytes,
    pub(super) page: Page,
}

impl Document {
    fn new(is_folder: bool) -> Self {
        // A test compares the text with what it is made of.
        let mut value: Value = serde_json::from_str(OF_FILE).unwrap_or_default();
        if is_folder && let Some(Value::Object(paths)) = value.get_mut("paths") {
            *paths = std::mem::take(paths).into_iter().map(in_folder).collect::<Map<_, _>>();
        }
        Self { text: value.to_string().into(), page: Page::of(&value) }
    }

    pub(super) fn answer(&self) -> Answer {
        answer(StatusCode::OK, Form::Json.name(), whole(self.text.clone()))
    }
}

pub(super) fn of(is_folder: bool) -> &'static Document {
    static OF_FILES: OnceLock<Document> = OnceLock::new();
    static OF_FOLDERS: OnceLock<Document> = OnceLock::new();
    let made = if is_folder { &OF_FOLDERS } else { &OF_FILES };
    made.get_or_init(|| Document::new(is_folder))
}

/// A path of a database as one of a database in a folder.
fn in_folder((path, mut item): (String, Value)) -> (String, Value) {
    let database = json!([{
        "name": "database",
        "in": "path",
        "description": "The name of the database.",
        "required": true,
        "schema": { "type": "string" },
    }]);
    if let Some(members) = item.as_object_mut() {
        members.insert("parameters".into(), database);
    }
    (path.replacen(BASE, BASE_IN_FOLDER, 1), item)
}
