//! The macros that declare settings.
//!
//! ```text
//! section! {
//!     /// The description of the table.
//!     ["council"] CouncilSection {
//!         /// The description of the setting.
//!         calls: u64 = 64, lower, flag("--max-calls");
//!     }
//! }
//! ```
//!
//! A field is `name: type = default`, followed by the methods of [`SettingSpec`](crate::spec::SettingSpec) that say
//! what else is known of it. The types are `u64`, `f64`, `bool`, `Text` (an `Option<String>`; an empty text is `None`),
//! `List` (of texts), `Table` (of texts by name), and any type of `words.rs` (one of the texts that it lists).
//!
//! `section!` makes the struct and its specs; `table!` makes only the specs, for tables that share a struct.

use std::collections::BTreeMap;

use toml::Value;

use crate::words::{OneOf, Words};

macro_rules! section {
    (
        $(#[doc = $about:literal])*
        [$table:literal] $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident : $kind:ident = $default:expr $(, $attribute:ident $(($argument:expr))?)* ; )*
        }
    ) => {
        #[doc = concat!("The settings of the table `", $table, "`.")]
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(
                #[doc = concat!("The setting `", $table, ".", stringify!($field), "`.")]
                pub $field: $crate::declare::section!(@type $kind),
            )*
        }

        impl $name {
            pub(crate) const SECTION: $crate::spec::Section = $crate::declare::section!(
                @section $(#[doc = $about])* [$table] {
                    $( $(#[doc = $doc])* $field : $kind = $default $(, $attribute $(($argument))?)* ; )*
                }
            );
        }

        impl $crate::declare::FromLayers for $name {
            fn read(value_of: &dyn Fn(&str) -> Option<toml::Value>) -> Self {
                Self {
                    $( $field: $crate::declare::FromValue::from_value(
                        &value_of(stringify!($field))
                            .unwrap_or_else(|| $crate::declare::section!(@default $kind $default).to_value()),
                    ), )*
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $crate::declare::FromLayers::read(&|_| None)
            }
        }
    };
    (
        @section $(#[doc = $about:literal])* [$table:literal] {
            $( $(#[doc = $doc:literal])* $field:ident : $kind:ident = $default:expr $(, $attribute:ident $(($argument:expr))?)* ; )*
        }
    ) => {
        $crate::spec::Section {
            table: $table,
            doc: &[$($about),*],
            specs: &[$(
                $crate::spec::SettingSpec::new(
                    concat!($table, ".", stringify!($field)),
                    &[$($doc),*],
                    $crate::declare::section!(@default $kind $default),
                    $crate::declare::section!(@words $kind),
                )$(.$attribute($($argument)?))*
            ),*],
        }
    };
    (@type u64) => { u64 };
    (@type f64) => { f64 };
    (@type bool) => { bool };
    (@type Text) => { Option<String> };
    (@type List) => { Vec<String> };
    (@type Table) => { std::collections::BTreeMap<String, String> };
    (@type $words:ident) => { $crate::words::OneOf<$crate::words::$words> };
    (@default u64 $default:expr) => { $crate::spec::DefaultValue::Whole($default) };
    (@default f64 $default:expr) => { $crate::spec::DefaultValue::Fraction($default) };
    (@default bool $default:expr) => { $crate::spec::DefaultValue::Bool($default) };
    (@default List $default:expr) => { $crate::spec::DefaultValue::List(&$default) };
    (@default Table $default:expr) => { $crate::spec::DefaultValue::Table };
    (@default $text:ident $default:expr) => { $crate::spec::DefaultValue::Text($default) };
    (@words u64) => { &[] };
    (@words f64) => { &[] };
    (@words bool) => { &[] };
    (@words Text) => { &[] };
    (@words List) => { &[] };
    (@words Table) => { &[] };
    (@words $words:ident) => { <$crate::words::$words as $crate::words::Words>::WORDS };
}

macro_rules! table {
    ( $(#[doc = $about:literal])* [$table:literal] $name:ident { $($fields:tt)* } ) => {
        pub(crate) const $name: $crate::spec::Section =
            $crate::declare::section!(@section $(#[doc = $about])* [$table] { $($fields)* });
    };
}

pub(crate) use {section, table};

/// A table of settings with a type of its own.
pub(crate) trait FromLayers: Sized {
    /// Reads each field by its name; a field without a value has its default.
    fn read(value_of: &dyn Fn(&str) -> Option<Value>) -> Self;
}

/// A type that a checked value is read into.
pub(crate) trait FromValue {
    fn from_value(value: &Value) -> Self;
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Self {
        value
            .as_integer()
            .and_then(|number| Self::try_from(number).ok())
            .unwrap_or_default()
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Self {
        let whole = || value.as_integer().map(|total| total as Self);
        value.as_float().or_else(whole).unwrap_or_default()
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Self {
        value.as_bool().unwrap_or_default()
    }
}

impl FromValue for Option<String> {
    fn from_value(value: &Value) -> Self {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

impl FromValue for Vec<String> {
    fn from_value(value: &Value) -> Self {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }
}

impl FromValue for BTreeMap<String, String> {
    fn from_value(value: &Value) -> Self {
        let text =
            |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        value
            .as_table()
            .into_iter()
            .flatten()
            .filter_map(text)
            .collect()
    }
}

impl<T: Words> FromValue for OneOf<T> {
    fn from_value(value: &Value) -> Self {
        Self::parse(value.as_str().unwrap_or_default())
    }
}
