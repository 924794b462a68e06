//! The query language: FTS5's grammar. It is parsed here, so that an error names its place and FTS5
//! gets only well-formed queries.
//!
//! ```text
//! query    = and { OR and }
//! and      = not { AND not }
//! not      = part { NOT part }
//! part     = "(" query ")" | columns ":" "(" query ")" | near { near }      (side by side: AND)
//! near     = [columns ":"] ( ["^"] phrase | NEAR "(" phrase { phrase } ["," number] ")" )
//! columns  = ["-"] ( field | "{" field { field } "}" )
//! phrase   = string { "+" string } ["*"]
//! ```
//!
//! The resulting expression has the query's own structure, because precedences are FTS5's. Every
//! string is quoted and every field is replaced by its number.
//!
//! A string is a bare word or a quoted text, with quotes in it doubled. Beyond FTS5, a field may be
//! written with its dots.

use super::division::divided;
use crate::model::{Error, QUERY_BYTES_MAX, QUERY_DEPTH_MAX, QUERY_TERMS_MAX, Result, Tokenizer};

/// The FTS5 expression of a query over columns `f0`, `f1`, … that stand for `fields`.
///
/// # Errors
/// `Invalid`, with the position (in UTF-16 units, as JavaScript counts), what was expected there and
/// what was found.
///
/// ```
/// use openkv_core::search::parse;
/// use openkv_core::model::Tokenizer;
/// let fields = ["name".to_owned(), "details.maker".to_owned()];
/// let parsed = |query| parse(query, &fields, Tokenizer::Auto);
/// assert_eq!(parsed("red bik*").as_deref(), Ok(r#""red" "bik" *"#));
/// assert_eq!(parsed("details.maker:volvo").as_deref(), Ok(r#"{f1} : "volvo""#));
/// assert!(parsed("red AND").is_err());
/// ```
pub fn parse(query: &str, fields: &[String], tokenizer: Tokenizer) -> Result<String> {
    if query.len() > QUERY_BYTES_MAX {
        let given = query.len();
        return Err(Error::too_large(format!(
            "kv.search: the query is too long (max {QUERY_BYTES_MAX} bytes): {given} bytes given"
        )));
    }
    let tokens = tokenize(query)?;
    let mut parser =
        Parser { query, fields, tokenizer, tokens: &tokens, at: 0, depth: 0, terms: 0 };
    let expression = parser.query()?;
    match parser.peek().kind {
        Kind::End => Ok(expression),
        _ => Err(parser.expected("AND, OR, NOT or the end")),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A bare word; with dots it can only be a field.
    Word(String),
    /// A quoted text, without its quotes.
    Quoted(String),
    And,
    Or,
    Not,
    /// `NEAR` before a parenthesis; otherwise it is a word.
    Near,
    Sign(char),
    End,
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    /// Its start, in bytes.
    start: usize,
}

/// The error at a place of a query.
fn refused(query: &str, start: usize, what: &str) -> Error {
    let before = query.get(..start).unwrap_or(query);
    let position = before.encode_utf16().count();
    Error::invalid(format!("kv.search: malformed query at position {position}: {what}"))
}

/// The space of Chinese and Japanese texts, as wide as a letter.
const IDEOGRAPHIC_SPACE: char = '\u{3000}';

fn is_word(letter: char) -> bool {
    let is_named = letter == '_' || letter == '\u{1a}' || !letter.is_ascii();
    letter.is_ascii_alphanumeric() || is_named && letter != IDEOGRAPHIC_SPACE
}

fn tokenize(query: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut letters = query.char_indices().peekable();
    while let Some((start, letter)) = letters.next() {
        let kind = match letter {
            ' ' | '\t' | '\n' | '\r' | IDEOGRAPHIC_SPACE => continue,
            '(' | ')' | '{' | '}' | ':' | ',' | '+' | '*' | '-' | '^' => Kind::Sign(letter),
            '"' => {
                let mut text = String::new();
                loop {
                    match letters.next() {
                        Some((_, '"')) if letters.next_if(|(_, next)| *next == '"').is_some() => {
                            text.push('"');
                        }
                        Some((_, '"')) => break,
                        Some((at, '\0')) => return Err(refused(query, at, NUL)),
                        Some((_, other)) => text.push(other),
                        None => {
                            let what = "the quote that starts here is not closed; expected '\"'";
                            return Err(refused(query, start, what));
                        }
                    }
                }
                Kind::Quoted(text)
            }
            letter if is_word(letter) => {
                let mut word = String::from(letter);
                while let Some((_, next)) =
                    letters.next_if(|(_, next)| is_word(*next) || *next == '.')
                {
                    word.push(next);
                }
                let opens = query.get(start + word.len()..).unwrap_or_default().trim_start();
                match word.as_str() {
                    "AND" => Kind::And,
                    "OR" => Kind::Or,
                    "NOT" => Kind::Not,
                    "NEAR" if opens.starts_with('(') => Kind::Near,
                    _ => Kind::Word(word),
                }
            }
            '\0' => return Err(refused(query, start, NUL)),
            other => {
                let what = format!("expected a term, found '{other}'; put it in double quotes");
                return Err(refused(query, start, &what));
            }
        };
        tokens.push(Token { kind, start });
    }
    tokens.push(Token { kind: Kind::End, start: query.len() });
    Ok(tokens)
}

const NUL: &str = "the character U+0000 cannot be searched for";

struct Parser<'q> {
    query: &'q str,
    fields: &'q [String],
    tokenizer: Tokenizer,
    tokens: &'q [Token],
    at: usize,
    depth: usize,
    terms: usize,
}

const END: &Token = &Token { kind: Kind::End, start: usize::MAX };

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &Token {
        self.tokens.get(self.at + by).or(self.tokens.last()).unwrap_or(END)
    }

    fn take(&mut self, kind: &Kind) -> bool {
        let found = self.peek().kind == *kind;
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: char, words: &str) -> Result<()> {
        if self.take(&Kind::Sign(sign)) { Ok(()) } else { Err(self.expected(words)) }
    }

    fn expected(&self, what: &str) -> Error {
        let Token { kind, start } = self.peek();
        let found = match kind {
            Kind::Word(text) => format!("'{text}'"),
            Kind::Quoted(text) => format!("\"{text}\""),
            Kind::And => "AND".into(),
            Kind::Or => "OR".into(),
            Kind::Not => "NOT".into(),
            Kind::Near => "NEAR".into(),
            Kind::Sign(sign) => format!("'{sign}'"),
            Kind::End => "the end of the query".into(),
        };
        refused(self.query, *start, &format!("expected {what}, found {found}"))
    }

    fn refused_here(&self, what: &str) -> Error {
        refused(self.query, self.peek().start, what)
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth <= QUERY_DEPTH_MAX {
            return Ok(());
        }
        Err(self.refused_here(&format!("nested too deeply (max {QUERY_DEPTH_MAX})")))
    }

    /// Operands of one operator, from left to right.
    fn chain(
        &mut self,
        operator: &Kind,
        word: &str,
        operand: fn(&mut Self) -> Result<String>,
    ) -> Result<String> {
        let mut all = operand(self)?;
        while self.take(operator) {
            all.push_str(word);
            all.push_str(&operand(self)?);
        }
        Ok(all)
    }

    fn query(&mut self) -> Result<String> {
        self.chain(&Kind::Or, " OR ", Self::and)
    }

    fn and(&mut self) -> Result<String> {
        self.chain(&Kind::And, " AND ", Self::not)
    }

    fn not(&mut self) -> Result<String> {
        self.chain(&Kind::Not, " NOT ", Self::part)
    }

    fn part(&mut self) -> Result<String> {
        if self.take(&Kind::Sign('(')) {
            return Ok(format!("({})", self.parenthesized()?));
        }
        let mut all = String::new();
        loop {
            let start = self.at;
            let columns = self.columns()?;
            if self.peek().kind == Kind::Sign('(') {
                if columns.is_none() || !all.is_empty() {
                    // FTS5 has no implicit AND beside parentheses.
                    self.at = start;
                    return Err(self.expected("AND, OR or NOT before what is in parentheses"));
                }
                self.at += 1;
                let inner = self.parenthesized()?;
                return Ok(format!("{}({inner})", columns.unwrap_or_default()));
            }
            let near = self.near()?;
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(&columns.unwrap_or_default());
            all.push_str(&near);
            match self.peek().kind {
                Kind::Word(_)
                | Kind::Quoted(_)
                | Kind::Near
                | Kind::Sign('^' | '-' | '{' | '(') => {}
                _ => return Ok(all),
            }
        }
    }

    /// The query in parentheses, after the opening one, and the closing one.
    fn parenthesized(&mut self) -> Result<String> {
        self.deeper()?;
        let inner = self.query()?;
        self.require(')', "AND, OR, NOT or ')'")?;
        self.depth -= 1;
        match self.peek().kind {
            Kind::Word(_) | Kind::Quoted(_) | Kind::Near | Kind::Sign('(' | '^' | '-' | '{') => {
                Err(self.expected("AND, OR or NOT after what is in parentheses"))
            }
            _ => Ok(inner),
        }
    }

    /// A restriction to fields, with its colon, if there is one here.
    fn columns(&mut self) -> Result<Option<String>> {
        let minus = self.peek().kind == Kind::Sign('-');
        let by = usize::from(minus);
        let set = self.ahead(by).kind == Kind::Sign('{');
        let named = matches!(self.ahead(by).kind, Kind::Word(_) | Kind::Quoted(_))
            && self.ahead(by + 1).kind == Kind::Sign(':');
        if !minus && !set && !named {
            return Ok(None);
        }
        self.at += by;
        let mut columns = Vec::new();
        if self.take(&Kind::Sign('{')) {
            while !self.take(&Kind::Sign('}')) {
                columns.push(self.column("a field or '}'")?);
            }
            if columns.is_empty() {
                self.at -= 1;
                return Err(self.expected("a field"));
            }
        } else {
            columns.push(self.column("a field")?);
        }
        self.require(':', "':' after the field")?;
        let sign = if minus { "- " } else { "" };
        Ok(Some(format!("{sign}{{{}}} : ", columns.join(" "))))
    }

    fn column(&mut self, expected: &str) -> Result<String> {
        let (Kind::Word(name) | Kind::Quoted(name)) = &self.peek().kind else {
            return Err(self.expected(expected));
        };
        let Some(number) = self.fields.iter().position(|field| field == name) else {
            let known = self.fields.join(", ");
            return Err(self.refused_here(&format!(
                "the index has no field '{name}'; its fields are {known}"
            )));
        };
        self.at += 1;
        Ok(format!("f{number}"))
    }

    fn near(&mut self) -> Result<String> {
        if self.take(&Kind::Sign('^')) {
            return Ok(format!("^ {}", self.phrase("a term after '^'")?));
        }
        if self.peek().kind != Kind::Near {
            return self.phrase("a term");
        }
        self.at += 2;
        let mut all = String::from("NEAR(");
        all.push_str(&self.phrase("a term")?);
        loop {
            if self.take(&Kind::Sign(')')) {
                all.push(')');
                return Ok(all);
            }
            if self.take(&Kind::Sign(',')) {
                let distance = match &self.peek().kind {
                    Kind::Word(digits) => digits.parse::<u16>().ok(),
                    _ => None,
                };
                let Some(distance) = distance else {
                    return Err(self.expected("a distance from 0 to 65535"));
                };
                self.at += 1;
                all.push_str(&format!(", {distance}"));
                self.require(')', "')' after the distance")?;
                all.push(')');
                return Ok(all);
            }
            all.push(' ');
            all.push_str(&self.phrase("a term, ',' or ')'")?);
        }
    }

    fn phrase(&mut self, expected: &str) -> Result<String> {
        let mut all = self.string(expected)?;
        while self.take(&Kind::Sign('+')) {
            all.push_str(" + ");
            all.push_str(&self.string("a term after '+'")?);
        }
        if self.take(&Kind::Sign('*')) {
            all.push_str(" *");
            if self.peek().kind == Kind::Sign('+') {
                return Err(self.expected("the end of the phrase, since '*' ends it"));
            }
        }
        Ok(all)
    }

    fn string(&mut self, expected: &str) -> Result<String> {
        let Token { kind, start } = self.peek().clone();
        let text = match kind {
            Kind::Quoted(text) => text,
            Kind::Word(word) => {
                if let Some(dot) = word.find('.') {
                    let what = "expected a term without '.', or ':' after a field; \
                                put a term with dots in double quotes";
                    return Err(refused(self.query, start + dot, what));
                }
                word
            }
            _ => return Err(self.expected(expected)),
        };
        self.terms += 1;
        if self.terms > QUERY_TERMS_MAX {
            return Err(self.refused_here(&format!("too many terms (max {QUERY_TERMS_MAX})")));
        }
        self.at += 1;
        let text = match self.tokenizer {
            Tokenizer::Auto => divided(&text),
            // FTS5 takes a string without a term for one that is not there, and finds what the others say.
            Tokenizer::Trigram if text.chars().count() < TRIGRAM_CHARS => {
                NOWHERE.repeat(TRIGRAM_CHARS)
            }
            Tokenizer::Unicode61 | Tokenizer::Porter | Tokenizer::Ascii | Tokenizer::Trigram => {
                text
            }
        };
        Ok(format!("\"{}\"", text.replace('"', "\"\"")))
    }
}

/// The characters of a term of [`Tokenizer::Trigram`].
const TRIGRAM_CHARS: usize = 3;
/// A character that is in no text.
const NOWHERE: &str = "\u{fdd2}";

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<String> {
        ["name", "details.maker", "odd-name"].map(str::to_owned).to_vec()
    }

    fn good(query: &str) -> String {
        parse(query, &fields(), Tokenizer::Auto).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    #[test]
    fn queries_become_expressions() {
        let table = [
            ("red", r#""red""#),
            ("red bike", r#""red" "bike""#),
            (r#""red ""bike""""#, r#""red ""bike""""#),
            ("bik*", r#""bik" *"#),
            ("a + b c", r#""a" + "b" "c""#),
            ("a AND b OR c", r#""a" AND "b" OR "c""#),
            ("a b OR c", r#""a" "b" OR "c""#),
            ("a NOT b NOT c", r#""a" NOT "b" NOT "c""#),
            ("(a OR b) AND c", r#"("a" OR "b") AND "c""#),
            ("NEAR(a b)", r#"NEAR("a" "b")"#),
            ("NEAR (a \"b c\"*, 5) d", r#"NEAR("a" "b c" *, 5) "d""#),
            ("NEAR", r#""NEAR""#),
            ("near and or", r#""near" "and" "or""#),
            ("name:red", r#"{f0} : "red""#),
            ("name : red blue", r#"{f0} : "red" "blue""#),
            ("details.maker:volvo", r#"{f1} : "volvo""#),
            ("\"odd-name\":x", r#"{f2} : "x""#),
            ("{name details.maker}: (a OR b)", r#"{f0 f1} : ("a" OR "b")"#),
            ("- name : a", r#"- {f0} : "a""#),
            ("-{name}:^a", r#"- {f0} : ^ "a""#),
            ("^a", r#"^ "a""#),
            ("été 東京", "\"été\" \"東\u{1f}京\""),
        ];
        for (query, expression) in table {
            assert_eq!(good(query), expression, "{query}");
        }
    }

    #[test]
    fn errors_name_their_position() {
        let table = [
            ("", 0, "expected a term, found the end"),
            ("   ", 3, "expected a term, found the end"),
            ("red AND", 7, "expected a term, found the end"),
            ("AND red", 0, "expected a term, found AND"),
            ("red OR OR blue", 7, "expected a term, found OR"),
            ("(red", 4, "expected AND, OR, NOT or ')', found the end"),
            ("red)", 3, "expected AND, OR, NOT or the end, found ')'"),
            ("()", 1, "expected a term, found ')'"),
            ("a (b)", 2, "expected AND, OR or NOT before"),
            ("(a) b", 4, "expected AND, OR or NOT after"),
            ("\"red", 0, "not closed"),
            ("a \"b\"\"", 2, "not closed"),
            ("red + ", 6, "expected a term after '+'"),
            ("*", 0, "expected a term, found '*'"),
            ("red * + b", 6, "'*' ends it"),
            ("^", 1, "expected a term after '^'"),
            ("NEAR(", 5, "expected a term, found the end"),
            ("NEAR(a b", 8, "expected a term, ',' or ')'"),
            ("NEAR(a, x)", 8, "expected a distance"),
            ("NEAR(a, 70000)", 8, "expected a distance"),
            ("NEAR(a, 5 b)", 10, "expected ')' after the distance"),
            ("nmae:red", 0, "has no field 'nmae'; its fields are name, details.maker, odd-name"),
            ("{name other}: a", 6, "has no field 'other'"),
            ("{}: a", 1, "expected a field, found '}'"),
            ("{name", 5, "expected a field or '}'"),
            ("{name} a", 7, "expected ':' after the field"),
            ("-a", 1, "has no field 'a'"),
            ("-", 1, "expected a field, found the end"),
            ("name:", 5, "expected a term, found the end"),
            ("name:AND", 5, "expected a term, found AND"),
            ("a.b", 1, "without '.'"),
            ("a; DROP TABLE kv", 1, "found ';'; put it in double quotes"),
            ("it's", 2, "found '''"),
            ("é😀 )", 4, "found ')'"),
            ("a\0b", 1, "U+0000"),
            ("\"a\0b\"", 2, "U+0000"),
        ];
        for (query, position, words) in table {
            let error = parse(query, &fields(), Tokenizer::Auto).unwrap_err();
            let place = format!("at position {position}: ");
            assert!(error.message().contains(&place), "{query}: {error}");
            assert!(error.message().contains(words), "{query}: {error}");
        }
    }

    #[test]
    fn size_is_bounded_in_every_direction() {
        let deep = |levels: usize| "(".repeat(levels) + "a" + &")".repeat(levels);
        good(&deep(QUERY_DEPTH_MAX));
        let error = parse(&deep(QUERY_DEPTH_MAX + 1), &fields(), Tokenizer::Auto).unwrap_err();
        assert!(error.message().contains("nested too deeply (max 8)"), "{error}");
        let error =
            parse(&"a ".repeat(QUERY_TERMS_MAX + 1), &fields(), Tokenizer::Auto).unwrap_err();
        assert!(error.message().contains("too many terms (max 128)"), "{error}");
        let error =
            parse(&"a".repeat(QUERY_BYTES_MAX + 1), &fields(), Tokenizer::Auto).unwrap_err();
        assert!(error.message().contains("max 4096 bytes): 4097 bytes given"), "{error}");
    }
}
