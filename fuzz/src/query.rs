//! Search queries: no text panics or takes long, and the result is quoted text, columns by number
//! and operators, with balanced quotes and parentheses.

use openkv::model::Tokenizer;
use openkv::search::parse;

pub(crate) fn check(data: &[u8]) {
    let Ok(query) = std::str::from_utf8(data) else { return };
    let fields = ["name".to_owned(), "details.maker".to_owned()];
    for tokenizer in [Tokenizer::Unicode61, Tokenizer::Trigram, Tokenizer::Auto] {
        let Ok(expression) = parse(query, &fields, tokenizer) else { continue };
        // Text between quotes is the user's; a doubled quote closes and reopens it.
        let outside: String = expression.split('"').step_by(2).collect();
        assert_eq!(expression.matches('"').count() % 2, 0, "{expression}");
        assert!(!expression.contains('\0'));
        let known = |letter: char| "(){}:,+*-^ f0123456789ANDORTE".contains(letter);
        assert!(outside.chars().all(known), "{expression}");
        for (open, close) in [('(', ')'), ('{', '}')] {
            assert_eq!(outside.matches(open).count(), outside.matches(close).count());
        }
    }
}
