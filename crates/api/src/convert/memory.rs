//! `GET /collections/{collection_name}/memory`: what a collection takes, in Qdrant's shape.

use flatwater_engine::collection::memory::{MemoryReport, Usage};
use serde_json::{Map, Value, json};

use super::text;

/// JSON of the report.
#[must_use]
pub fn encode_memory(report: &MemoryReport) -> Vec<u8> {
    let vectors = report.vectors.iter().map(|(name, vector)| {
        let mut shown = Map::new();
        shown.insert("name".to_owned(), json!(name));
        shown.insert("storage".to_owned(), usage(vector.storage));
        shown.insert("index".to_owned(), usage(vector.index));
        if let Some(codes) = vector.quantized {
            shown.insert("quantized".to_owned(), usage(codes));
        }
        Value::Object(shown)
    });
    let fields = report
        .fields
        .iter()
        .map(|(name, taken)| json!({ "name": name, "usage": usage(*taken) }));
    text(&json!({
        "total": usage(report.total),
        "vectors": vectors.collect::<Value>(),
        "sparse_vectors": [],
        "payload": usage(report.payload),
        "payload_index": fields.collect::<Value>(),
        "other": { "id_tracker": usage(report.ids) },
    }))
}

fn usage(taken: Usage) -> Value {
    json!({
        "disk_bytes": taken.disk_bytes,
        "ram_bytes": taken.ram_bytes,
        "cached_bytes": taken.cached_bytes,
        "expected_cache_bytes": taken.expected_cache_bytes,
    })
}

#[cfg(test)]
mod tests {
    use flatwater_engine::collection::memory::VectorUsage;

    use super::*;

    #[test]
    fn the_shape_is_qdrants_and_codes_are_left_out_where_there_are_none() {
        let some = Usage {
            disk_bytes: 1,
            ram_bytes: 2,
            cached_bytes: 3,
            expected_cache_bytes: 4,
        };
        let with_codes = VectorUsage {
            storage: some,
            quantized: Some(some),
            ..VectorUsage::default()
        };
        let report = MemoryReport {
            vectors: [
                (String::new(), with_codes),
                ("b".to_owned(), VectorUsage::default()),
            ]
            .into(),
            fields: [("city".to_owned(), some)].into(),
            ..MemoryReport::default()
        };
        let shown: Value = serde_json::from_slice(&encode_memory(&report)).unwrap();
        let u = json!({"disk_bytes": 1, "ram_bytes": 2, "cached_bytes": 3,
                       "expected_cache_bytes": 4});
        assert_eq!(shown["vectors"][0]["name"], "");
        assert_eq!(shown["vectors"][0]["quantized"], u);
        assert_eq!(shown["vectors"][1].get("quantized"), None);
        assert_eq!(
            shown["payload_index"],
            json!([{"name": "city", "usage": u}])
        );
        assert_eq!(shown["sparse_vectors"], json!([]));
        let zero = &shown["other"]["id_tracker"]["disk_bytes"];
        assert_eq!((zero, &shown["total"]["ram_bytes"]), (&json!(0), &json!(0)));
    }
}
