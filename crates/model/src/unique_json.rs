//! JSON from outside in which no object holds a key twice: readers differ about which of the two counts, so neither does.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A parsed value without duplicate keys. A parse error names the position and never quotes the document.
#[derive(Debug)]
pub struct UniqueJson(pub Value);

impl UniqueJson {
    /// Reads a document with exact whole numbers. A number beyond 64 bits is an error, because rounding to a
    /// floating-point number would silently change an account or an identifier.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, with the position.
    pub fn exact(document: &[u8]) -> Result<Value, serde_json::Error> {
        let Self(value) = serde_json::from_slice(document)?;
        match beyond_64_bits(document) {
            None => Ok(value),
            Some(at) => {
                let before = document.get(..at).unwrap_or_default();
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                let column = before
                    .iter()
                    .rev()
                    .take_while(|byte| **byte != b'\n')
                    .count()
                    + 1;
                let what = format!(
                    "a whole number has more than 64 bits and would be changed; write it as a text, at line {line} column {column}"
                );
                Err(Error::custom(what))
            }
        }
    }
}

/// Where the first whole number of a JSON document begins that no 64 bits hold.
fn beyond_64_bits(document: &[u8]) -> Option<usize> {
    let of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let mut at = 0;
    while let Some(byte) = document.get(at) {
        let rest = document.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => text_length(rest),
            b'-' | b'0'..=b'9' => {
                let number = rest.iter().take_while(|byte| of_number(byte)).count();
                let digits = std::str::from_utf8(rest.get(..number)?).ok()?;
                let is_whole = !digits.contains(['.', 'e', 'E']);
                if is_whole && digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err() {
                    return Some(at);
                }
                number
            }
            _ => 1,
        };
    }
    None
}

/// The length of the text that a JSON document begins with, its quotes included.
fn text_length(document: &[u8]) -> usize {
    let mut escaped = false;
    let end = document.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(document.len(), |end| end + 2)
}

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom("a key stands twice in an object"));
            }
            let UniqueJson(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_key_in_json_is_refused() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,0.5,"x\u0041"],"b":{"a":{}}}"#;
        let UniqueJson(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        for twice in [
            r#"{"secret":1,"secret":1}"#,
            r#"[{"b":{"secret":1,"\u0073ecret":2}}]"#,
        ] {
            let error = serde_json::from_str::<UniqueJson>(twice)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("a key stands twice in an object at line 1"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn whole_number_beyond_64_bits_is_refused() {
        for good in [
            r#"{"a":[18446744073709551615,-9223372036854775808,-0,0,1e30,12345678901234567890123.0]}"#,
            r#"{"12345678901234567890123":"12345678901234567890123 \" 98765432109876543210987"}"#,
            "18446744073709551615",
        ] {
            assert_eq!(
                UniqueJson::exact(good.as_bytes()).unwrap(),
                serde_json::from_str::<Value>(good).unwrap()
            );
        }
        for (bad, place) in [
            ("18446744073709551616", "line 1 column 1"),
            ("{\"a\":\n [0, -9223372036854775809]}", "line 2 column 6"),
            (
                r#"{"a\\":123456789012345678901234567890}"#,
                "line 1 column 8",
            ),
        ] {
            let error = UniqueJson::exact(bad.as_bytes()).unwrap_err().to_string();
            assert!(
                error.contains("more than 64 bits") && error.ends_with(place),
                "{error}"
            );
        }
        assert!(UniqueJson::exact(br#"{"a":1,"a":1}"#).is_err());
    }
}
