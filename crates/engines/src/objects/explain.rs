//! The errors of an object store in the words of openkv, without the queries of URLs.

use openkv_core::model::Error;

/// The error of a request, with what to do.
pub(super) fn explain(name: &str, error: &object_store::Error) -> Error {
    use object_store::Error as Failed;
    let name = redacted(name);
    let text = redacted(&error.to_string());
    let may_not = "check that the credentials, or the permissions of the folder, allow to read, write, list \
                   and delete there";
    let denied =
        std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source())
            .filter_map(|error| error.downcast_ref::<std::io::Error>())
            .any(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    match error {
        Failed::PermissionDenied { .. } | Failed::Unauthenticated { .. } => Error::denied(format!(
            "{name}: the object store refuses the credentials: {may_not} ({text})"
        )),
        _ if denied => Error::denied(format!("{name}: {may_not} ({text})")),
        Failed::NotFound { .. } => Error::unavailable(format!(
            "{name}: there is no such object, bucket or folder ({text})"
        )),
        _ => Error::unavailable(format!("{name}: {text}")),
    }
}

/// A text without the queries of its URLs, which can be signatures.
pub(super) fn redacted(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('?') {
        shown.push_str(before);
        let in_url =
            before.rsplit(char::is_whitespace).next().is_some_and(|word| word.contains("://"));
        if in_url {
            let end = after.find(|c: char| c.is_whitespace() || "\"')>,".contains(c));
            shown.push_str("?…");
            rest = after.get(end.unwrap_or(after.len())..).unwrap_or_default();
        } else {
            shown.push('?');
            rest = after;
        }
    }
    shown.push_str(rest);
    shown
}
