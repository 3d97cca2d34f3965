//! Encodes the JSON of a request: schema properties in the order of `required`, and bounds of lists only
//! if the server supports them.
//!
//! Servers that enforce a schema let the model write the keys in the order of `properties`. The order
//! changes the result: a model that must approve before it may list faults tends to approve. This program
//! sorts object keys everywhere, so the meaningful order is that of the list `required`, which is
//! complete in a closed schema.
//!
//! Invariant: only the order of keys and the bounds of lists in a schema differ from the given value.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

const PROPERTIES: &str = "properties";

/// The keywords that bound a list in a schema.
const LIST_BOUNDS: [&str; 2] = ["minItems", "maxItems"];

/// Whether a server accepts a schema that bounds its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListBounds {
    /// It does.
    Taken,
    /// It does not, or that is unknown: it refuses such a request, or supports only some values.
    LeftOut,
}

/// Encodes a request's body.
pub(crate) fn to_wire(body: &Value, list_bounds: ListBounds) -> Vec<u8> {
    // A JSON value can always be encoded.
    serde_json::to_vec(&Ordered {
        value: body,
        list_bounds,
    })
    .unwrap_or_default()
}

struct Ordered<'v> {
    value: &'v Value,
    list_bounds: ListBounds,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list_bounds = self.list_bounds;
        match self.value {
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|value| {
                    list.serialize_element(&Ordered { value, list_bounds })
                })?;
                list.end()
            }
            Value::Object(fields) => {
                let is_list = list_bounds == ListBounds::LeftOut
                    && fields.get("type").is_some_and(|kind| kind == "array");
                let mut map = serializer.serialize_map(None)?;
                for (key, value) in fields {
                    match (key.as_str(), value, fields.get("required")) {
                        (bound, _, _) if is_list && LIST_BOUNDS.contains(&bound) => {}
                        (PROPERTIES, Value::Object(properties), Some(Value::Array(order))) => {
                            map.serialize_entry(
                                key,
                                &InOrder {
                                    properties,
                                    order,
                                    list_bounds,
                                },
                            )?;
                        }
                        _ => map.serialize_entry(key, &Ordered { value, list_bounds })?,
                    }
                }
                map.end()
            }
            plain => plain.serialize(serializer),
        }
    }
}

/// Properties in the order of a list, then the others.
struct InOrder<'v> {
    properties: &'v Map<String, Value>,
    order: &'v [Value],
    list_bounds: ListBounds,
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = |key: &str| {
            self.order
                .iter()
                .position(|named| named == key)
                .unwrap_or(usize::MAX)
        };
        let mut properties: Vec<(&String, &Value)> = self.properties.iter().collect();
        properties.sort_by_key(|(key, _)| place(key));
        let list_bounds = self.list_bounds;
        let mut map = serializer.serialize_map(Some(properties.len()))?;
        for (key, value) in properties {
            map.serialize_entry(key, &Ordered { value, list_bounds })?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_properties_follow_required_order() {
        let inner = json!({"required": ["z", "a"], "properties": {"a": {"type": "null"}, "z": {"type": "null"}}});
        let body = json!({"format": {"required": ["name", "list"], "properties": {"extra": {}, "list": {"items": inner}, "name": {}}}});
        let sent = String::from_utf8(to_wire(&body, ListBounds::LeftOut)).unwrap();
        let places: Vec<usize> = [
            "\"name\":{}",
            "\"list\":{",
            "\"z\":{",
            "\"a\":{",
            "\"extra\":{}",
        ]
        .map(|key| sent.find(key).unwrap())
        .into();
        assert!(places.is_sorted(), "{sent}");
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), body);
    }

    #[test]
    fn list_bounds_are_sent_only_if_supported() {
        let list = |bounds: bool| {
            let mut list = json!({"type": "array", "items": {"type": "string"}});
            if bounds {
                list["minItems"] = 3.into();
                list["maxItems"] = 5.into();
            }
            json!({"schema": {"properties": {"seats": list, "minItems": {"type": "string"}}, "required": ["seats", "minItems"]}})
        };
        let sent = |list_bounds| {
            serde_json::from_slice::<Value>(&to_wire(&list(true), list_bounds)).unwrap()
        };
        assert_eq!(sent(ListBounds::Taken), list(true));
        assert_eq!(
            sent(ListBounds::LeftOut),
            list(false),
            "and a key of that name is no bound"
        );
    }

    #[test]
    fn non_schema_json_is_sent_unchanged() {
        for body in [
            json!({"b": [1, -2, 0.5, "x\n", null, true], "a": {"properties": 3, "required": ["x"]}}),
            json!({"properties": {"b": 1, "a": 2}}),
            json!({"properties": {"b": 1, "a": 2}, "required": "b"}),
        ] {
            assert_eq!(
                String::from_utf8(to_wire(&body, ListBounds::LeftOut)).unwrap(),
                body.to_string()
            );
        }
    }
}
