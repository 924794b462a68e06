//! The tags of the format.

use crate::model::{ErrorName, ViewClass};

/// Start of a value; the version of the format follows.
pub(super) const VERSION: u8 = 0xff;
/// The oldest and newest version that is read, and the version that is written.
pub(super) const VERSION_MIN: u32 = 13;
pub(super) const VERSION_MAX: u32 = 16;
pub(super) const VERSION_WRITTEN: u32 = 15;
/// The first version in which every view has flags.
pub(super) const VERSION_WITH_VIEW_FLAGS: u32 = 14;

pub(super) const PADDING: u8 = 0;
pub(super) const OBJECT_COUNT: u8 = b'?';
pub(super) const UNDEFINED: u8 = b'_';
pub(super) const NULL: u8 = b'0';
pub(super) const TRUE: u8 = b'T';
pub(super) const FALSE: u8 = b'F';
pub(super) const INT32: u8 = b'I';
pub(super) const UINT32: u8 = b'U';
pub(super) const DOUBLE: u8 = b'N';
pub(super) const BIGINT: u8 = b'Z';
pub(super) const ONE_BYTE_STRING: u8 = b'"';
pub(super) const TWO_BYTE_STRING: u8 = b'c';
pub(super) const UTF8_STRING: u8 = b'S';
pub(super) const REFERENCE: u8 = b'^';
pub(super) const OBJECT: u8 = b'o';
pub(super) const OBJECT_END: u8 = b'{';
pub(super) const DENSE_ARRAY: u8 = b'A';
pub(super) const DENSE_ARRAY_END: u8 = b'$';
pub(super) const SPARSE_ARRAY: u8 = b'a';
pub(super) const SPARSE_ARRAY_END: u8 = b'@';
pub(super) const HOLE: u8 = b'-';
pub(super) const DATE: u8 = b'D';
pub(super) const TRUE_OBJECT: u8 = b'y';
pub(super) const FALSE_OBJECT: u8 = b'x';
pub(super) const NUMBER_OBJECT: u8 = b'n';
pub(super) const BIGINT_OBJECT: u8 = b'z';
pub(super) const STRING_OBJECT: u8 = b's';
pub(super) const REGEXP: u8 = b'R';
pub(super) const MAP: u8 = b';';
pub(super) const MAP_END: u8 = b':';
pub(super) const SET: u8 = b'\'';
pub(super) const SET_END: u8 = b',';
pub(super) const BUFFER: u8 = b'B';
pub(super) const RESIZABLE_BUFFER: u8 = b'~';
pub(super) const VIEW: u8 = b'V';
pub(super) const ERROR: u8 = b'r';
pub(super) const HOST_OBJECT: u8 = b'\\';

/// Flags of a view: it extends to the end of its resizable buffer; its buffer is resizable.
pub(super) const LENGTH_TRACKING: u32 = 1;
pub(super) const RESIZABLE: u32 = 2;

/// Parts of an error, beside the letters of its class.
pub(super) const ERROR_MESSAGE: u8 = b'm';
pub(super) const ERROR_CAUSE: u8 = b'c';
pub(super) const ERROR_STACK: u8 = b's';
pub(super) const ERROR_END: u8 = b'.';

/// Follows [`HOST_OBJECT`] before Deno's record with a `type`.
pub(super) const DENO_HOST: u32 = u32::MAX;

const ERRORS: [(ErrorName, u8); 6] = [
    (ErrorName::EvalError, b'E'),
    (ErrorName::RangeError, b'R'),
    (ErrorName::ReferenceError, b'F'),
    (ErrorName::SyntaxError, b'S'),
    (ErrorName::TypeError, b'T'),
    (ErrorName::UriError, b'U'),
];

pub(super) fn error_of(letter: u8) -> Option<ErrorName> {
    ERRORS.iter().find(|entry| entry.1 == letter).map(|entry| entry.0)
}

/// `None` for plain errors, which have no letter.
pub(super) fn letter_of(name: ErrorName) -> Option<u8> {
    ERRORS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

const VIEWS: [(ViewClass, u8); 13] = [
    (ViewClass::Int8, b'b'),
    (ViewClass::Uint8, b'B'),
    (ViewClass::Uint8Clamped, b'C'),
    (ViewClass::Int16, b'w'),
    (ViewClass::Uint16, b'W'),
    (ViewClass::Int32, b'd'),
    (ViewClass::Uint32, b'D'),
    (ViewClass::Float16, b'h'),
    (ViewClass::Float32, b'f'),
    (ViewClass::Float64, b'F'),
    (ViewClass::BigInt64, b'q'),
    (ViewClass::BigUint64, b'Q'),
    (ViewClass::DataView, b'?'),
];

pub(super) fn view_of(letter: u8) -> Option<ViewClass> {
    VIEWS.iter().find(|entry| entry.1 == letter).map(|entry| entry.0)
}

pub(super) fn letter_of_view(class: ViewClass) -> u8 {
    VIEWS.iter().find(|entry| entry.0 == class).map_or(b'?', |entry| entry.1)
}

/// Node's numbers for views in host objects. Its `Buffer` is read as a `Uint8Array`.
pub(super) fn node_view_of(index: u32) -> Option<ViewClass> {
    const CLASSES: [ViewClass; 14] = [
        ViewClass::Int8,
        ViewClass::Uint8,
        ViewClass::Uint8Clamped,
        ViewClass::Int16,
        ViewClass::Uint16,
        ViewClass::Int32,
        ViewClass::Uint32,
        ViewClass::Float32,
        ViewClass::Float64,
        ViewClass::DataView,
        ViewClass::Uint8,
        ViewClass::BigInt64,
        ViewClass::BigUint64,
        ViewClass::Float16,
    ];
    CLASSES.get(usize::try_from(index).ok()?).copied()
}

/// Flags of regular expressions by bit; V8's own "linear" flag has no equivalent in JavaScript.
const REGEXP_FLAGS: [(u32, char); 8] =
    [(1, 'g'), (2, 'i'), (4, 'm'), (8, 'y'), (16, 'u'), (32, 's'), (128, 'd'), (256, 'v')];

/// The flags in alphabetical order, as in JavaScript; `None` for unknown bits.
pub(super) fn flags_of(bits: u32) -> Option<String> {
    let known = REGEXP_FLAGS.iter().fold(0, |all, (bit, _)| all | bit);
    // A regular expression has at most one of the two Unicode flags.
    if bits & !known != 0 || bits & (16 | 256) == (16 | 256) {
        return None;
    }
    let mut flags: Vec<char> =
        REGEXP_FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, flag)| *flag).collect();
    flags.sort_unstable();
    Some(flags.into_iter().collect())
}

pub(super) fn bits_of(flags: &str) -> u32 {
    let bit = |flag| REGEXP_FLAGS.iter().find(|entry| entry.1 == flag).map_or(0, |entry| entry.0);
    flags.chars().map(bit).fold(0, |bits, bit| bits | bit)
}
