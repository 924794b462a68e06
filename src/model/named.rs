//! Enums whose variants have names in the public API.

/// Declares an enum with `ALL` and `name`, so that neither lacks a variant.
macro_rules! named {
    ($(#[doc = $doc:literal])* pub enum $Enum:ident {
        $($(#[doc = $of:literal])* $name:ident = $text:literal,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Enum { $($(#[doc = $of])* $name,)* }

        impl $Enum {
            /// Every variant, in the order of their numbers.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// The name in the public API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

pub(crate) use named;
