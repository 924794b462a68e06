//! The terms of scripts without spaces between words.
//!
//! FTS5 finds terms between characters that are no letters, so a sentence of Chinese or Thai is one term, and no word of
//! it is found. For [`Tokenizer::Auto`](crate::model::Tokenizer::Auto) a text is stored with a character between the
//! letters of these scripts, each with its marks, and a string of a query is divided in the same way. FTS5 then takes a
//! string of them for a phrase, which finds these letters side by side, at any place and in any number.

use std::cmp::Ordering;

/// Divides two terms. FTS5 takes it for no letter, and no text that is stored has it.
const DIVIDER: char = '\u{1f}';

/// The class of a character in a text without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A term of its own, with the marks behind it.
    Letter,
    /// A part of the letter before it.
    Mark,
    /// As `Mark`; the letter behind it is a part too.
    Stacks,
    /// Anything else.
    Other,
}

use Class::{Letter, Mark, Stacks};

/// The scripts, by their first and last characters, in order. Digits have spaces around them or are numbers, and are
/// left out.
const SCRIPTS: &[(char, char, Class)] = &[
    // Thai.
    ('\u{e01}', '\u{e30}', Letter),
    ('\u{e31}', '\u{e31}', Mark),
    ('\u{e32}', '\u{e33}', Letter),
    ('\u{e34}', '\u{e3a}', Mark),
    ('\u{e40}', '\u{e46}', Letter),
    ('\u{e47}', '\u{e4e}', Mark),
    // Lao.
    ('\u{e81}', '\u{eb0}', Letter),
    ('\u{eb1}', '\u{eb1}', Mark),
    ('\u{eb2}', '\u{eb3}', Letter),
    ('\u{eb4}', '\u{ebc}', Mark),
    ('\u{ebd}', '\u{ec6}', Letter),
    ('\u{ec8}', '\u{ece}', Mark),
    ('\u{edc}', '\u{edf}', Letter),
    // Myanmar.
    ('\u{1000}', '\u{102a}', Letter),
    ('\u{102b}', '\u{1038}', Mark),
    ('\u{1039}', '\u{1039}', Stacks),
    ('\u{103a}', '\u{103e}', Mark),
    ('\u{103f}', '\u{103f}', Letter),
    ('\u{1050}', '\u{1055}', Letter),
    ('\u{1056}', '\u{1059}', Mark),
    ('\u{105a}', '\u{105d}', Letter),
    ('\u{105e}', '\u{1060}', Mark),
    ('\u{1061}', '\u{1061}', Letter),
    ('\u{1062}', '\u{1064}', Mark),
    ('\u{1065}', '\u{1066}', Letter),
    ('\u{1067}', '\u{106d}', Mark),
    ('\u{106e}', '\u{1070}', Letter),
    ('\u{1071}', '\u{1074}', Mark),
    ('\u{1075}', '\u{1081}', Letter),
    ('\u{1082}', '\u{108d}', Mark),
    ('\u{108e}', '\u{108e}', Letter),
    ('\u{108f}', '\u{108f}', Mark),
    ('\u{109a}', '\u{109d}', Mark),
    // Hangul letters: consonants at the start of a syllable, and the rest of it.
    ('\u{1100}', '\u{115f}', Letter),
    ('\u{1160}', '\u{11ff}', Mark),
    // Khmer.
    ('\u{1780}', '\u{17b3}', Letter),
    ('\u{17b4}', '\u{17d1}', Mark),
    ('\u{17d2}', '\u{17d2}', Stacks),
    ('\u{17d3}', '\u{17d3}', Mark),
    ('\u{17d7}', '\u{17d7}', Letter),
    ('\u{17dc}', '\u{17dc}', Letter),
    ('\u{17dd}', '\u{17dd}', Mark),
    // Tai Le, New Tai Lue, Tai Tham.
    ('\u{1950}', '\u{1974}', Letter),
    ('\u{1980}', '\u{19c9}', Letter),
    ('\u{1a20}', '\u{1a54}', Letter),
    ('\u{1a55}', '\u{1a5e}', Mark),
    ('\u{1a60}', '\u{1a60}', Stacks),
    ('\u{1a61}', '\u{1a7f}', Mark),
    // Chinese, Japanese, Korean, Yi.
    ('\u{3005}', '\u{3007}', Letter),
    ('\u{3031}', '\u{3035}', Letter),
    ('\u{303b}', '\u{303c}', Letter),
    ('\u{3041}', '\u{3096}', Letter),
    ('\u{3099}', '\u{309a}', Mark),
    ('\u{309d}', '\u{309f}', Letter),
    ('\u{30a1}', '\u{30fa}', Letter),
    ('\u{30fc}', '\u{30ff}', Letter),
    ('\u{3105}', '\u{312f}', Letter),
    ('\u{3131}', '\u{318e}', Letter),
    ('\u{31a0}', '\u{31bf}', Letter),
    ('\u{31f0}', '\u{31ff}', Letter),
    ('\u{3400}', '\u{4dbf}', Letter),
    ('\u{4e00}', '\u{9fff}', Letter),
    ('\u{a000}', '\u{a48c}', Letter),
    ('\u{a960}', '\u{a97c}', Letter),
    ('\u{a9e0}', '\u{a9e4}', Letter),
    ('\u{a9e5}', '\u{a9e5}', Mark),
    ('\u{a9e7}', '\u{a9ef}', Letter),
    ('\u{a9fa}', '\u{a9fe}', Letter),
    ('\u{aa60}', '\u{aa76}', Letter),
    ('\u{aa7a}', '\u{aa7a}', Letter),
    ('\u{aa7b}', '\u{aa7d}', Mark),
    ('\u{aa7e}', '\u{aa7f}', Letter),
    ('\u{ac00}', '\u{d7a3}', Letter),
    ('\u{d7b0}', '\u{d7fb}', Mark),
    ('\u{f900}', '\u{faff}', Letter),
    ('\u{ff66}', '\u{ff9d}', Letter),
    ('\u{ff9e}', '\u{ff9f}', Mark),
    ('\u{ffa1}', '\u{ffdc}', Letter),
    ('\u{1aff0}', '\u{1b16f}', Letter),
    ('\u{20000}', '\u{2fa1f}', Letter),
    ('\u{30000}', '\u{3fffd}', Letter),
];

impl Class {
    fn of(letter: char) -> Self {
        if letter < '\u{e01}' {
            return Self::Other;
        }
        let found = SCRIPTS.binary_search_by(|(first, last, _)| match letter {
            letter if letter < *first => Ordering::Greater,
            letter if letter > *last => Ordering::Less,
            _ => Ordering::Equal,
        });
        let class = found.ok().and_then(|at| SCRIPTS.get(at)).map(|(.., class)| *class);
        class.unwrap_or(Self::Other)
    }
}

/// The text with U+001F between its terms, where nothing else is between them.
///
/// ```
/// use openkv_core::search::{divided, undivided};
/// let stored = divided("東京2020");
/// assert_eq!(stored, "東\u{1f}京\u{1f}2020");
/// assert_eq!(undivided(&stored), "東京2020");
/// ```
#[must_use]
pub fn divided(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = Class::Other;
    // Whether a term goes on behind the last character.
    let mut in_term = false;
    for letter in text.chars() {
        let class = Class::of(letter);
        let is_term = class != Class::Other || letter.is_alphanumeric();
        let begins = match class {
            Letter => before != Stacks,
            Mark | Stacks => false,
            Class::Other => before != Class::Other,
        };
        if in_term && is_term && begins {
            out.push(DIVIDER);
        }
        out.push(if letter == DIVIDER { ' ' } else { letter });
        // A mark of another script goes on with the term before it.
        let is_mark = !is_term && before != Class::Other && is_combining(letter);
        if !is_mark {
            (before, in_term) = (class, is_term);
        }
    }
    out
}

/// The text without the dividers.
#[must_use]
pub fn undivided(text: &str) -> String {
    text.replace(DIVIDER, "")
}

/// Marks of all scripts, and the selectors of variants of a character.
fn is_combining(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_without_spaces_are_divided_and_others_are_not() {
        for (text, expected) in [
            ("", ""),
            ("red bike, café", "red bike, café"),
            ("東京都に行きました。", "東|京|都|に|行|き|ま|し|た。"),
            ("東京 2020年", "東|京 2020|年"),
            ("iPhone東京v2", "iPhone|東|京|v2"),
            ("コーヒー・紅茶", "コ|ー|ヒ|ー・紅|茶"),
            ("か\u{3099}き", "か\u{3099}|き"),
            ("서울에 가다", "서|울|에 가|다"),
            (
                "\u{1100}\u{1161}\u{11a8}\u{1112}\u{1161}",
                "\u{1100}\u{1161}\u{11a8}|\u{1112}\u{1161}",
            ),
            ("ที่นี่", "ที่|นี่"),
            ("น้ำ๒๕๖๗", "น้|ำ|๒๕๖๗"),
            ("ພາສາລາວ", "ພ|າ|ສ|າ|ລ|າ|ວ"),
            // A consonant below another one is a part of the syllable.
            ("ខ្មែរ", "ខ្មែ|រ"),
            ("မြန်မာ", "မြ|န်|မာ"),
            ("\u{1000}\u{1039}\u{1001}\u{1000}", "\u{1000}\u{1039}\u{1001}|\u{1000}"),
            ("हिन्दी", "हिन्दी"),
            ("葛\u{e0100}飾", "葛\u{e0100}|飾"),
            ("𠮷野家", "𠮷|野|家"),
            ("日本🗾地図", "日|本🗾地|図"),
            ("a\u{1f}b", "a b"),
        ] {
            let stored = divided(text);
            assert_eq!(stored.replace(DIVIDER, "|"), expected);
            assert_eq!(undivided(&stored), text.replace(DIVIDER, " "));
            assert_eq!(divided(&undivided(&stored)), stored);
        }
    }

    #[test]
    fn scripts_are_in_order() {
        assert!(SCRIPTS.iter().all(|(first, last, _)| first <= last));
        assert!(SCRIPTS.is_sorted_by(|a, b| a.1 < b.0));
    }
}
