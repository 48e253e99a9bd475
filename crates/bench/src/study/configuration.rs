//! Configurations of the optimizer study, as data.

use std::error::Error;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The 13 of the published study.
const PUBLISHED: &str = include_str!("configurations.json");

/// Settings of the index threshold that never start the indexing, as the published study wrote them (KB).
pub(super) const NEVER_KB: u64 = 7_300_000;

/// What is done once the collection is at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Afterwards {
    #[default]
    Nothing,
    /// Delete the first quarter of the points at once, then search.
    Churn,
    /// Switch the indexing on, then search.
    LateIndexing,
}

/// One configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Configuration {
    pub(super) id: String,
    pub(super) name: String,
    /// Settings that the collection is made with; a text `N*cores` is a number.
    #[serde(default)]
    pub(super) create: Value,
    #[serde(default)]
    pub(super) afterwards: Afterwards,
}

impl Configuration {
    /// Those with these ids, in this order, from `text` or the published ones; `all` are all.
    pub(super) fn chosen(text: Option<&str>, ids: &[String]) -> Result<Vec<Self>, Box<dyn Error>> {
        let fault = |error| format!("the configurations cannot be read: {error}");
        let all: Vec<Self> = serde_json::from_str(text.unwrap_or(PUBLISHED)).map_err(fault)?;
        if ids == ["all"] {
            return Ok(all);
        }
        let find = |id: &String| {
            let known = || {
                all.iter()
                    .map(|c| c.id.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let found = all.iter().find(|c| c.id.eq_ignore_ascii_case(id)).cloned();
            found.ok_or_else(|| format!("no configuration `{id}`; there are {}", known()).into())
        };
        ids.iter().map(find).collect()
    }

    /// Settings for a server with so many cores.
    pub(super) fn settings(&self, cores: usize) -> Result<Value, String> {
        match &self.create {
            Value::Null => Ok(Value::Object(Map::new())),
            settings => with_cores(settings, cores),
        }
    }

    /// The same with the indexing held: it is switched on when all points are in.
    pub(super) fn held(&self, cores: usize) -> Result<Value, String> {
        let mut settings = self.settings(cores)?;
        settings["optimizers_config"]["indexing_threshold"] = NEVER_KB.into();
        Ok(settings)
    }

    /// Threshold of the indexing that it sets, KB.
    pub(super) fn indexing_threshold(&self) -> Option<u64> {
        self.create["optimizers_config"]["indexing_threshold"].as_u64()
    }
}

fn with_cores(value: &Value, cores: usize) -> Result<Value, String> {
    match value {
        Value::String(text) => match text.strip_suffix("*cores") {
            Some(times) => match times.parse::<usize>() {
                Ok(times) => Ok(Value::from(times * cores)),
                Err(_) => Err(format!("`{text}` is not a number times cores")),
            },
            None => Ok(value.clone()),
        },
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(k, v)| Ok((k.clone(), with_cores(v, cores)?)));
            entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_the_thirteen_of_the_study_and_the_default_is_four_of_them() {
        let all = Configuration::chosen(None, &[String::from("all")]).unwrap();
        let ids: Vec<&str> = all.iter().map(|c| c.id.as_str()).collect();
        let published = [
            "A1", "A2", "A3", "B1", "B2", "B3", "B4", "C1", "C2", "D1", "D2", "E1", "E2",
        ];
        assert_eq!(ids, published);
        let settings = |id: &str| {
            let one = Configuration::chosen(None, &[String::from(id)]).unwrap();
            one[0].settings(14).unwrap()
        };
        assert!(
            ["A1", "B2", "C2"]
                .iter()
                .all(|id| settings(id) == Value::Object(Map::new()))
        );
        assert_eq!(
            settings("b3")["optimizers_config"]["default_segment_number"],
            56
        );
        assert_eq!(
            settings("A2")["optimizers_config"]["indexing_threshold"],
            NEVER_KB
        );
    }

    #[test]
    fn held_settings_never_index_and_keep_the_rest() {
        let one = Configuration::chosen(None, &[String::from("B4")]).unwrap();
        let held = one[0].held(2).unwrap();
        assert_eq!(held["optimizers_config"]["indexing_threshold"], NEVER_KB);
        assert_eq!(held["optimizers_config"]["max_segment_size"], 100_000);
        assert_eq!(one[0].indexing_threshold(), None);
    }

    #[test]
    fn a_fault_is_named() {
        let error = |text: Option<&str>, id: &str| {
            Configuration::chosen(text, &[String::from(id)])
                .unwrap_err()
                .to_string()
        };
        assert!(error(None, "Z9").contains("no configuration `Z9`; there are A1, A2"));
        assert!(error(Some("[{\"id\": 1}]"), "A1").contains("cannot be read"));
        assert!(
            error(
                Some("[{\"id\": \"a\", \"name\": \"\", \"colour\": 1}]"),
                "a"
            )
            .contains("colour")
        );
    }
}
