//! The query of a text in which nothing has a meaning but its words.

use crate::model::{Error, QUERY_BYTES_MAX, QUERY_TERMS_MAX, Result};

/// A query without a term: it finds nothing.
const NOTHING: &str = "\"\"";

/// The query that finds what has every word of the text; without words it finds nothing.
///
/// ```
/// use openkv_core::search::words;
/// assert_eq!(words("C++ AND don't").as_deref(), Ok(r#""C++" "AND" "don't""#));
/// assert_eq!(words(" \" ").as_deref(), Ok(r#""""#));
/// ```
///
/// # Errors
/// `TooLarge` for more words or bytes than a query has.
pub fn words(text: &str) -> Result<String> {
    let ends_word = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\0');
    let words: Vec<_> = text.split(ends_word).filter(|word| !word.is_empty()).collect();
    let given = words.len();
    if given > QUERY_TERMS_MAX {
        return Err(Error::too_large(format!(
            "kv.search: too many words (max {QUERY_TERMS_MAX}): {given} given"
        )));
    }
    if words.is_empty() {
        return Ok(NOTHING.to_owned());
    }
    let query = format!("\"{}\"", words.join("\" \""));
    let bytes = query.len();
    if bytes > QUERY_BYTES_MAX {
        return Err(Error::too_large(format!(
            "kv.search: the words are too long (max {QUERY_BYTES_MAX} bytes, each in quotes): {bytes} bytes given"
        )));
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Tokenizer;
    use crate::search::parse;

    #[test]
    fn the_number_and_the_length_of_words_have_bounds() {
        assert!(words(&"a ".repeat(QUERY_TERMS_MAX)).is_ok());
        assert!(words(&"a ".repeat(QUERY_TERMS_MAX + 1)).is_err());
        assert!(words(&"a".repeat(QUERY_BYTES_MAX - 2)).is_ok());
        assert!(words(&"a".repeat(QUERY_BYTES_MAX - 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query(text: String) {
            for tokenizer in Tokenizer::ALL {
                let query = words(&text).unwrap();
                prop_assert!(parse(&query, &["name".to_owned()], tokenizer).is_ok(), "{}", query);
            }
        }
    }
}
