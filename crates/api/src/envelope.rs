//! The wrapper of every JSON answer: `{"result": .., "status": .., "time": ..}`.

use std::io::Write;
use std::time::Duration;

/// Wraps the JSON text of a result. `result` must be one valid JSON value.
#[must_use]
pub fn success(result: &[u8], elapsed: Duration) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len() + 64);
    out.extend_from_slice(b"{\"result\":");
    out.extend_from_slice(result);
    out.extend_from_slice(b",\"status\":\"ok\",\"time\":");
    push_seconds(&mut out, elapsed);
    out.push(b'}');
    out
}

/// Wraps the text of an error.
#[must_use]
pub fn error(text: &str, elapsed: Duration) -> Vec<u8> {
    let mut out = b"{\"status\":{\"error\":".to_vec();
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
    out.extend_from_slice(b"},\"time\":");
    push_seconds(&mut out, elapsed);
    out.push(b'}');
    out
}

fn push_seconds(out: &mut Vec<u8>, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    // Writing to memory does not fail.
    let _ = write!(out, "{seconds:.9}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn success_carries_result_status_and_time() {
        let bytes = success(b"{\"count\":3}", Duration::from_micros(1500));
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            value,
            json!({"result": {"count": 3}, "status": "ok", "time": 0.0015})
        );
    }

    #[test]
    fn error_text_is_escaped_and_has_no_result() {
        let bytes = error("no \"x\"\n", Duration::ZERO);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            value,
            json!({"status": {"error": "no \"x\"\n"}, "time": 0.0})
        );
    }
}
