//! Options of the studies: `--name value`, each one an entry of a table that also makes the help.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    /// With its dashes.
    pub(crate) name: &'static str,
    /// What stands behind it, for the help.
    pub(crate) value: &'static str,
    /// Taken when it is not given; empty: none.
    pub(crate) default: &'static str,
    pub(crate) text: &'static str,
}

/// An option of the table.
pub(crate) const fn flag(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    text: &'static str,
) -> Flag {
    Flag {
        name,
        value,
        default,
        text,
    }
}

/// What was given, over the defaults.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    values: BTreeMap<&'static str, String>,
    /// Words without dashes, in their order.
    pub(crate) words: Vec<String>,
}

impl Given {
    /// Reads the words of a command line.
    pub(crate) fn parse(tables: &[&[Flag]], words: &[&str]) -> Result<Self, Box<dyn Error>> {
        let flags = || tables.iter().flat_map(|table| table.iter());
        let mut given = Self {
            values: flags().map(|f| (f.name, f.default.to_owned())).collect(),
            words: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with("--") {
                given.words.push((*word).to_owned());
                continue;
            }
            let Some(flag) = flags().find(|flag| flag.name == *word) else {
                return Err(format!("no option `{word}`; --help lists them").into());
            };
            let Some(value) = words.next() else {
                return Err(format!("`{word}` has no value, it wants {}", flag.value).into());
            };
            given.values.insert(flag.name, (*value).to_owned());
        }
        Ok(given)
    }

    /// A value as it was given; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// A value that need not be there.
    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// A whole number with `k` or `M` behind it, or `all`.
    pub(crate) fn count(&self, name: &str) -> Result<usize, Box<dyn Error>> {
        let text = self.text(name);
        if text == "all" {
            return Ok(usize::MAX);
        }
        let (digits, times) = match text.strip_suffix(['k', 'M']) {
            Some(digits) if text.ends_with('k') => (digits, 1_000),
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        };
        let number = digits
            .parse::<usize>()
            .ok()
            .and_then(|n| n.checked_mul(times));
        number.ok_or_else(|| format!("{name} is `{text}`, not a whole number").into())
    }

    /// A number of at least 0.
    pub(crate) fn real(&self, name: &str) -> Result<f64, Box<dyn Error>> {
        let text = self.text(name);
        let number = text
            .parse::<f64>()
            .ok()
            .filter(|x| x.is_finite() && *x >= 0.0);
        number.ok_or_else(|| format!("{name} is `{text}`, not a number from 0").into())
    }

    /// `yes` or `no`.
    pub(crate) fn is(&self, name: &str) -> Result<bool, Box<dyn Error>> {
        match self.text(name) {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(format!("{name} is `{other}`, not yes or no").into()),
        }
    }

    /// Words between commas.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let words = self.text(name).split(',').map(str::trim);
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Everything, for reports; keys of servers left out.
    pub(crate) fn json(&self) -> serde_json::Value {
        let shown = self.values.iter().filter(|(name, _)| **name != "--api-key");
        shown
            .map(|(name, value)| ((*name).to_owned(), serde_json::json!(value)))
            .collect()
    }
}

/// The help of some tables.
pub(crate) fn help(head: &str, tables: &[&[Flag]]) -> String {
    let mut text = format!("{head}\n");
    for flag in tables.iter().flat_map(|table| table.iter()) {
        let head = format!("{} {}", flag.name, flag.value);
        let default = match flag.default {
            "" => String::new(),
            default => format!(" (default {default})"),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {head:26} {}{default}", flag.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Flag; 3] = [
        flag("--rows", "N", "all", "rows"),
        flag("--rate", "X", "50", "calls a second"),
        flag("--hold", "yes|no", "no", "hold the indexing"),
    ];

    #[test]
    fn values_are_read_over_their_defaults() {
        let given =
            Given::parse(&[&TABLE], &["--rows", "20k", "one", "--hold", "yes", "two"]).unwrap();
        assert_eq!(given.count("--rows").unwrap(), 20_000);
        assert_eq!(given.real("--rate").unwrap(), 50.0);
        assert!(given.is("--hold").unwrap());
        assert_eq!(given.words, ["one", "two"]);
        let none = Given::parse(&[&TABLE], &[]).unwrap();
        assert_eq!(none.count("--rows").unwrap(), usize::MAX);
    }

    #[test]
    fn a_fault_names_option_and_value() {
        let read = |words: &[&str]| Given::parse(&[&TABLE], words);
        for (fault, text) in [
            (read(&["--speed", "1"]).unwrap_err(), "no option `--speed`"),
            (
                read(&["--rows"]).unwrap_err(),
                "`--rows` has no value, it wants N",
            ),
            (
                read(&["--rows", "-1"])
                    .unwrap()
                    .count("--rows")
                    .unwrap_err(),
                "--rows is `-1`",
            ),
            (
                read(&["--rate", "nan"])
                    .unwrap()
                    .real("--rate")
                    .unwrap_err(),
                "--rate is `nan`",
            ),
            (
                read(&["--hold", "1"]).unwrap().is("--hold").unwrap_err(),
                "--hold is `1`, not yes",
            ),
        ] {
            assert!(fault.to_string().contains(text), "{fault}");
        }
        assert!(
            help("head", &[&TABLE])
                .contains("--rate X                   calls a second (default 50)")
        );
    }
}
