//! Host objects that Deno stores as a record with a `type`.

use crate::model::{DomException, JsString, Node, NodeId, Value};

/// The object that a record describes.
pub(super) fn of_record(value: &Value, record: NodeId) -> Result<Node, &'static str> {
    let Some(Node::Object(entries)) = value.node(record) else {
        return Err("invalid value: host object without its record");
    };
    let text = |name: &str| -> Option<&JsString> {
        let entry = entries.iter().find(|(known, _)| known.as_str() == Some(name))?;
        match value.node(entry.1) {
            Some(Node::String(text)) => Some(text),
            _ => None,
        }
    };
    match text("type").and_then(JsString::as_str) {
        Some("DOMException") => match (text("message"), text("name")) {
            (Some(message), Some(name)) => Ok(Node::DomException(Box::new(DomException {
                message: message.clone(),
                name: name.clone(),
                stack: text("stack").cloned(),
            }))),
            _ => Err("invalid value: DOMException without its parts"),
        },
        Some("Blob" | "File") => {
            Err("unreadable value: Deno has stored a Blob without its contents")
        }
        Some("CryptoKey" | "NodeCryptoKeyObject") => {
            Err("unreadable value: keys of Web Crypto are known to Deno only")
        }
        _ => Err("unreadable value: an object that is known to Deno only"),
    }
}
