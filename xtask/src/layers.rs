//! The module order inside each crate, declared and checked.
//!
//! 1. `[package.metadata.layers] order = [...]` in a crate's `Cargo.toml` names its top modules
//!    from top to bottom. `"a | b"` puts two side by side; neither may use the other.
//! 2. The list must hold exactly the modules that `lib.rs` or `main.rs` declares.
//! 3. A file may use only modules below its own. The crate's root may use all of them. A name that
//!    the root re-exports counts as the module it comes from. Tests may use everything.
//!
//! Cargo itself enforces the order between crates.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::source::{code_only, line_of, without_tests, word, words_at};
use crate::workspace::{Workspace, files_below};

/// Every breach of the declared orders, as `file:line: text`.
pub(crate) fn problems(workspace: &Workspace) -> io::Result<Vec<String>> {
    let mut problems = Vec::new();
    for package in workspace.packages()? {
        for problem in package_problems(&package)? {
            problems.push(format!("{}/{problem}", workspace.shown(&package)));
        }
    }
    Ok(problems)
}

fn package_problems(package: &Path) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
    let Some(order) = declared_order(&manifest) else {
        return Ok(vec![String::from(
            "Cargo.toml: no [package.metadata.layers] with an `order`",
        )]);
    };
    let sources = package.join("src");
    let mut problems = Vec::new();
    // A package may have a library and a program of the same name; each has its own root.
    for root in ["lib.rs", "main.rs"] {
        let path = sources.join(root);
        if path.is_file() {
            let code = without_tests(&code_only(&fs::read_to_string(&path)?));
            problems.extend(check_root(&order, root, &code));
        }
    }
    let library = fs::read_to_string(sources.join("lib.rs")).unwrap_or_default();
    let exports = reexports(&without_tests(&code_only(&library)));
    for path in files_below(&sources, &["rs"])? {
        let inside = path.strip_prefix(&sources).unwrap_or(&path);
        let Some(place) = Place::of(inside) else {
            continue;
        };
        let code = without_tests(&code_only(&fs::read_to_string(&path)?));
        for (line, problem) in check_file(&order, &exports, &place, &code) {
            problems.push(format!("src/{}:{line}: {problem}", inside.display()));
        }
    }
    Ok(problems)
}

/// Module name -> layer, 0 at the top.
type Order = BTreeMap<String, usize>;

fn declared_order(manifest: &str) -> Option<Order> {
    let (_, rest) = manifest.split_once("[package.metadata.layers]")?;
    let (_, list) = rest.split_once("order")?.1.split_once('[')?;
    let (list, _) = list.split_once(']')?;
    let lines = list
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let text = lines.collect::<Vec<_>>().join(" ");
    let entries = text.split('"').skip(1).step_by(2).enumerate();
    let beside = |(layer, entry): (usize, &str)| {
        let names = entry.split('|').map(|name| (name.trim().to_owned(), layer));
        names.collect::<Vec<_>>()
    };
    Some(entries.flat_map(beside).collect())
}

/// The root's `mod` lines against the order.
fn check_root(order: &Order, root: &str, code: &str) -> Vec<String> {
    let declared: Vec<&str> = words_at(code, "mod")
        .map(|at| word(code[at + 3..].trim_start()))
        .collect();
    let missing = declared.iter().filter(|name| !order.contains_key(**name));
    let mut problems: Vec<String> = missing
        .map(|name| format!("src/{root}: module `{name}` is not in the order of Cargo.toml"))
        .collect();
    if root == "lib.rs" || declared.len() >= order.len() {
        let gone = order
            .keys()
            .filter(|name| !declared.contains(&name.as_str()));
        problems.extend(gone.map(|name| format!("Cargo.toml: there is no module `{name}`")));
    }
    problems
}

/// Names that the root re-exports, and the module each one comes from.
fn reexports(code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for at in words_at(code, "use") {
        if !code[..at].trim_end().ends_with(['b', ')']) {
            continue;
        }
        let path = code[at + 3..].split(';').next().unwrap_or("");
        let path = path
            .trim()
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        let module = word(path);
        for name in path
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .skip(1)
        {
            found
                .entry(name.to_owned())
                .or_insert_with(|| module.to_owned());
        }
    }
    found
}

/// Where a file stands in the crate.
#[derive(Debug, PartialEq)]
struct Place {
    /// Its top module.
    module: String,
    /// How often `super` leads from the file's module to the root.
    depth: usize,
}

impl Place {
    /// `None` for roots and for test files.
    fn of(inside: &Path) -> Option<Self> {
        let mut names: Vec<String> = inside
            .with_extension("")
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if names.len() > 1 && names.last().is_some_and(|name| name == "mod") {
            names.pop();
        }
        let module = names.first()?.clone();
        let is_root = names.len() == 1 && (module == "lib" || module == "main");
        let is_test = module == "bin"
            || names
                .iter()
                .any(|name| name == "tests" || name.ends_with("_tests"));
        (!is_root && !is_test).then_some(Self {
            module,
            depth: names.len(),
        })
    }
}

fn check_file(
    order: &Order,
    exports: &BTreeMap<String, String>,
    place: &Place,
    code: &str,
) -> Vec<(usize, String)> {
    let Some(own) = order.get(&place.module) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for (at, name) in used_names(code, place.depth) {
        let module = exports.get(name).map_or(name, String::as_str);
        let problem = match order.get(module) {
            Some(_) if module == place.module => continue,
            Some(layer) if layer > own => continue,
            Some(_) => format!(
                "`{}` may not use `{module}`: it does not stand lower",
                place.module
            ),
            None => format!("`crate::{name}` is no module; name the module that it comes from"),
        };
        problems.push((line_of(code, at), problem));
    }
    problems
}

/// The first name of each path from the crate's root: after `crate::`, after `super::` as often as
/// it leads there, and each one inside `crate::{...}`.
fn used_names(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for at in words_at(code, "crate") {
        if let Some(rest) = code[at + "crate".len()..].strip_prefix("::") {
            found.extend(names_of(rest).into_iter().map(|name| (at, name)));
        }
    }
    let up = "super::".repeat(depth);
    for at in words_at(code, "super") {
        let continues = code[..at].ends_with("super::");
        let leads_out = code[at..]
            .strip_prefix(&up)
            .filter(|rest| !rest.starts_with("super::"));
        if let Some(rest) = leads_out.filter(|_| !continues) {
            found.extend(names_of(rest).into_iter().map(|name| (at, name)));
        }
    }
    found
}

/// What a path after `crate::` names: one word, or those at the first level of its braces. A macro
/// is no module and is left out.
fn names_of(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else {
        let name = word(rest);
        let is_macro = rest[name.len()..].starts_with('!');
        return if name.is_empty() || is_macro {
            Vec::new()
        } else {
            vec![name]
        };
    };
    let mut names = Vec::new();
    let (mut depth, mut expects_name) = (0_usize, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expects_name = true,
            c if expects_name && depth == 0 && !c.is_whitespace() => {
                names.push(word(&group[at..]));
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n\n[package.metadata.layers]\n\
        # top to bottom\norder = [\n  \"top\", # why\n  \"left | right\",\n  \"low\",\n]\n";

    fn breaches(file: &str, code: &str) -> Vec<String> {
        let order = declared_order(MANIFEST).unwrap();
        let exports = reexports("pub mod low;\npub use low::{Id, Seq};\n");
        let place = Place::of(Path::new(file)).unwrap();
        let code = without_tests(&code_only(code));
        check_file(&order, &exports, &place, &code)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn the_declared_order_of_modules_holds_in_every_crate() {
        let problems = problems(&Workspace::find()).unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }

    #[test]
    fn a_lower_module_may_be_used_and_a_higher_one_may_not() {
        assert!(breaches("top/a.rs", "use crate::low::Id;").is_empty());
        assert!(breaches("left.rs", "use crate::low::Id;").is_empty());
        assert_eq!(breaches("low/mod.rs", "use crate::top::T;").len(), 1);
        assert_eq!(breaches("low.rs", "fn f() { crate::top::t() }").len(), 1);
    }

    #[test]
    fn modules_side_by_side_may_not_see_each_other() {
        assert_eq!(breaches("left/a.rs", "use crate::right::R;").len(), 1);
        assert!(breaches("left/a.rs", "use crate::left::b::B;").is_empty());
    }

    #[test]
    fn groups_super_paths_and_reexports_are_seen_through() {
        assert_eq!(
            breaches("low.rs", "use crate::{\n top::{A, B},\n left::C };").len(),
            2
        );
        assert_eq!(
            breaches("low/a/b.rs", "use super::super::super::top::A;").len(),
            1
        );
        assert!(breaches("low/a/b.rs", "use super::super::c::A;").is_empty());
        assert!(breaches("left.rs", "use crate::Id;").is_empty());
        assert_eq!(breaches("left.rs", "use crate::Unknown;").len(), 1);
    }

    #[test]
    fn tests_comments_and_macros_do_not_count() {
        assert!(
            breaches(
                "low.rs",
                "// crate::top\n#[cfg(test)]\nmod t { use crate::top::A; }"
            )
            .is_empty()
        );
        assert!(breaches("low.rs", "crate::mark!(x); f(\"crate::top\")").is_empty());
        assert_eq!(Place::of(Path::new("low/tests.rs")), None);
    }

    #[test]
    fn the_order_and_the_root_must_name_the_same_modules() {
        let order = declared_order(MANIFEST).unwrap();
        let problems = check_root(
            &order,
            "lib.rs",
            "mod top; mod left; pub mod right; mod new;",
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].contains("`new`") && problems[1].contains("`low`"),
            "{problems:?}"
        );
        assert_eq!(declared_order("[package]\nname = \"x\"\n"), None);
    }
}
