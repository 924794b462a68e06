//! A simple parser of Rust source: finds the words of the code, and the paths that lead out of a
//! module.

use std::path::{Path, PathBuf};

use crate::root;

/// A file of source.
pub(crate) struct Source {
    /// Its path from the repository's root, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The module of the file, as a path from the crate's root.
    pub(crate) modules: Vec<String>,
    /// Words and marks of the code, without comments and literals.
    tokens: Vec<String>,
}

/// The folders of source of the crates, those of the addon first.
pub(crate) fn crates() -> Vec<PathBuf> {
    let mut folders = vec![root().join("src")];
    for entry in std::fs::read_dir(root().join("crates")).expect("readable") {
        folders.push(entry.expect("readable").path().join("src"));
    }
    folders
}

/// All files of source of all crates.
pub(crate) fn all_sources() -> Vec<Source> {
    crates().iter().flat_map(|folder| sources(folder)).collect()
}

/// All files of source below a folder.
pub(crate) fn sources(folder: &Path) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let below = path.strip_prefix(&root).expect("below the root");
                let parts = below.iter().map(|part| part.to_string_lossy().into_owned());
                let parts: Vec<String> = parts.collect();
                found.push(Source::new(&parts, text));
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

impl Source {
    fn new(parts: &[String], text: String) -> Self {
        let below = parts.iter().skip_while(|part| *part != "src").skip(1);
        let mut modules: Vec<String> =
            below.map(|part| part.trim_end_matches(".rs").to_owned()).collect();
        if modules.last().is_some_and(|last| last == "mod" || last == "lib") {
            modules.pop();
        }
        let tokens = tokens(&text);
        Self { name: parts.join("/"), text, modules, tokens }
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token == word)
    }

    /// Every path outside inline modules that starts with `crate::` or `super::`, from the crate's root.
    pub(crate) fn absolute_paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        self.walk(|at, base, inline| {
            if !inline {
                self.collect(at, base, &mut paths);
            }
        });
        paths
    }

    /// Visits the token after each `crate::` and each chain of `super::` that leaves the file's
    /// inline modules, with the module that the chain leads to, and whether it is in an inline
    /// module.
    fn walk(&self, mut visit: impl FnMut(usize, &[String], bool)) {
        // The depth of braces, and the depths at which inline modules began.
        let (mut depth, mut inline) = (0_usize, Vec::new());
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            match token.as_str() {
                "{" => {
                    depth += 1;
                    let before = at.checked_sub(2).and_then(|at| self.tokens.get(at));
                    if before.is_some_and(|word| word == "mod") {
                        inline.push(depth);
                    }
                }
                "}" => {
                    if inline.last() == Some(&depth) {
                        inline.pop();
                    }
                    depth = depth.saturating_sub(1);
                }
                "crate" if self.is(at + 1, "::") => visit(at + 2, &[], !inline.is_empty()),
                "super" if at == 0 || !self.is(at - 1, "::") => {
                    let mut supers = 1_usize;
                    while self.is(at + 1, "::") && self.is(at + 2, "super") {
                        supers += 1;
                        at += 2;
                    }
                    if let Some(above) = supers.checked_sub(inline.len())
                        && above > 0
                        && self.is(at + 1, "::")
                    {
                        let kept = self.modules.len().saturating_sub(above);
                        let base = self.modules.get(..kept).unwrap_or_default();
                        visit(at + 2, base, !inline.is_empty());
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn is(&self, at: usize, token: &str) -> bool {
        self.tokens.get(at).is_some_and(|found| found == token)
    }

    /// The path, or the tree of paths, at this position.
    fn collect(&self, mut at: usize, before: &[String], paths: &mut Vec<Vec<String>>) {
        let mut path = before.to_vec();
        while let Some(token) = self.tokens.get(at) {
            if token == "{" {
                let mut depth = 0_usize;
                loop {
                    let Some(token) = self.tokens.get(at) else { return };
                    match token.as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    let starts = depth == 1 && (self.is(at, "{") || self.is(at, ","));
                    if starts && !self.is(at + 1, "}") {
                        self.collect(at + 1, &path, paths);
                    }
                    if depth == 0 {
                        return;
                    }
                    at += 1;
                }
            }
            path.push(token.clone());
            if !self.is(at + 1, "::") {
                break;
            }
            at += 2;
        }
        paths.push(path);
    }
}

/// Words, `::` and single marks, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = literal_or_comment(rest);
        if len > 0 {
            rest = rest.get(len..).unwrap_or_default();
            continue;
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let len = match first {
            _ if word > 0 => word,
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(len);
        if !first.is_whitespace() {
            tokens.push(token.to_owned());
        }
        rest = after;
    }
    tokens
}

/// Length of the comment, string or character at the start of the text; 0 if there is none.
fn literal_or_comment(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |end| end + 2);
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c']).len();
    let (prefix, body) = if prefix <= 1 { text.split_at(prefix) } else { ("", text) };
    let hashes = body.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
    if let Some(hashes) = hashes
        && body.get(1 + hashes..).is_some_and(|raw| raw.starts_with('"'))
    {
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix.len() + 2 + hashes;
        let tail = text.get(start..).unwrap_or_default();
        return tail.find(&end).map_or(text.len(), |at| start + at + end.len());
    }
    let quote = match body.chars().next() {
        Some('"') => '"',
        // A character, not a lifetime, if it is closed after one character or an escape.
        Some('\'') if body.starts_with("'\\") || body.chars().nth(2) == Some('\'') => '\'',
        _ => return 0,
    };
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return prefix.len() + at + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn paths_are_found_in_code_only() {
    let text = r##"
        //! [`crate::engine`]
        use crate::{a::{self, B}, c};
        use crate::store::Store;
        fn f<'a>() { let s = "crate::no"; let c = '"'; super::up::x(); /* crate::no */ }
        const R: &str = r#"crate::no"#;
        mod tests { use super::*; use super::super::room::Y; fn g() { crate::d(b"x"); } }
        fn h() { super::super::far::z() }
    "##;
    let parts = ["src", "engine", "mod.rs"].map(str::to_owned);
    let source = Source::new(&parts, text.to_owned());
    assert_eq!(source.modules, ["engine"]);
    let absolute: Vec<String> =
        source.absolute_paths().iter().map(|path| path.join("::")).collect();
    assert_eq!(absolute, ["a::self", "a::B", "c", "store::Store", "up::x", "far::z"]);
    assert!(source.has_word("Store") && !source.has_word("no"));
}
