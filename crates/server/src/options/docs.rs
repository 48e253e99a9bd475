//! The page docs/config.md, made from the table of options.

use std::fmt::Write;

use super::defs::OPTIONS;

/// The page.
#[must_use]
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for def in &OPTIONS {
        let variable = def.key.to_uppercase().replace('.', "__");
        // Writing to a String does not fail.
        let _ = writeln!(page, "\n### `{}`\n", def.key);
        let _ = writeln!(page, "{}\n", def.effect);
        match def.default {
            Some(default) => {
                let _ = writeln!(page, "- default: `{default}`");
            }
            None => page.push_str("- default: not set\n"),
        }
        let unit = if def.unit.is_empty() {
            String::new()
        } else {
            format!(" ({})", def.unit)
        };
        let _ = writeln!(page, "- range: {}{unit}", def.kind.range());
        let _ = writeln!(
            page,
            "- environment: `FLATWATER__{variable}` (or `QDRANT__{variable}`)"
        );
    }
    page
}

const INTRODUCTION: &str = "\
# Options

Made from `crates/server/src/options/defs.rs`; change it there and run
`FLATWATER_WRITE_DOCS=1 cargo test -p flatwater-server docs` to write this page again.

An option is taken from, later wins:

1. the built-in default,
2. `./config/config.{yaml,yml,toml,json}`, the first that is there,
3. `./config/MODE.*`, with the value of the variable `RUN_MODE` for MODE, or `development`,
4. `./config/local.*`,
5. the file named by `--config-path`,
6. the environment by Qdrant's names: `QDRANT__SECTION__KEY`,
7. the environment by our names: `FLATWATER__SECTION__KEY`.

The names are Qdrant's, so that its files and its variables can be used as they are. A key that Qdrant
knows and that is not served yet is accepted with a warning; so is a key that neither knows. A value
outside its range stops the start with a message that names key, value and range.

A security setting that is not served (`service.jwt_rbac`, `service.enable_tls`,
`service.verify_https_client_certificate`, `cluster.p2p.enable_tls`) stops the start too. The paths
under `tls.` alone turn nothing on, in Qdrant neither.

The settings under `storage.optimizers`, `storage.hnsw_index` and `storage.wal` are what a new
collection gets where its creator says nothing; they are stored with the collection.

## Every option
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_config_md_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        if std::env::var_os("FLATWATER_WRITE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == page(),
            "docs/config.md is stale: FLATWATER_WRITE_DOCS=1 cargo test -p flatwater-server docs"
        );
    }
}
