//! Enums whose variants have names in the public API.

/// Declares an enum with `ALL`, `name` and `from_name`, so that none lacks a variant.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Enum:ident {
        $($(#[$of:meta])* $name:ident = $text:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Enum { $($(#[$of])* $name,)* }

        impl $Enum {
            /// Every variant, in the order of their numbers.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// The name in the public API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The variant with this name; `None` for any other name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}
