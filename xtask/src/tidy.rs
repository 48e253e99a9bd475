//! Rules of the repository that no compiler checks (`docs/style.md` gives the reasons):
//!
//! 1. Rust source is ASCII.
//! 2. An open end carries the number of its issue: `(#12)` follows the mark.
//! 3. No module has a name that says nothing.
//! 4. Links and quoted paths in the docs resolve; a page has one title.
//! 5. Every invariant of `ARCHITECTURE.md` names a test, and the test exists.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::docs::{page_problems, without_code_blocks};
use crate::source::{code_only, word, words_at};
use crate::workspace::Workspace;

/// Marks of unfinished work, in two pieces so that this line is none.
const MARKS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Names under which anything could stand.
const VAGUE_NAMES: [&str; 10] = [
    "common", "handler", "helper", "helpers", "manager", "managers", "misc", "stuff", "util",
    "utils",
];

/// Every breach of the rules, as `file:line: text`.
pub(crate) fn problems(workspace: &Workspace) -> io::Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in workspace.files(&["rs", "py", "toml", "sh"])? {
        let shown = workspace.shown(&path);
        let text = fs::read_to_string(&path)?;
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        for (number, line) in text.lines().enumerate() {
            if is_rust && !line.is_ascii() {
                problems.push(format!("{shown}:{}: not ASCII", number + 1));
            }
            if let Some(mark) = mark_without_issue(line) {
                problems.push(format!("{shown}:{}: {mark} without (#issue)", number + 1));
            }
        }
        if is_rust {
            problems.extend(vague_name(
                path.strip_prefix(&workspace.root).unwrap_or(&path),
            ));
        }
    }
    for page in workspace.files(&["md"])? {
        for (line, problem) in page_problems(&workspace.root, &page)? {
            problems.push(format!("{}:{line}: {problem}", workspace.shown(&page)));
        }
    }
    let architecture = fs::read_to_string(workspace.root.join("ARCHITECTURE.md"))?;
    problems.extend(invariant_problems(&architecture, &test_names(workspace)?));
    Ok(problems)
}

fn mark_without_issue(line: &str) -> Option<&'static str> {
    let has_issue = |rest: &str| {
        rest.strip_prefix("(#").is_some_and(|rest| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            digits > 0 && rest[digits..].starts_with(')')
        })
    };
    let bare = |mark: &str| words_at(line, mark).any(|at| !has_issue(&line[at + mark.len()..]));
    MARKS.into_iter().find(|mark| bare(mark))
}

fn vague_name(path: &Path) -> Option<String> {
    let stem = path.with_extension("");
    let mut parts = stem
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts
        .find(|part| VAGUE_NAMES.contains(&part.as_str()))
        .map(|part| {
            format!(
                "{}: `{part}` says nothing; name what is inside",
                path.display()
            )
        })
}

/// Names of all test functions: Rust functions behind a `test` attribute or inside `proptest!`,
/// and Python functions that pytest collects.
fn test_names(workspace: &Workspace) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in workspace.files(&["rs"])? {
        names.extend(rust_tests(&code_only(&fs::read_to_string(path)?)));
    }
    for path in workspace.files(&["py"])? {
        names.extend(python_tests(&fs::read_to_string(path)?));
    }
    Ok(names)
}

fn rust_tests(code: &str) -> BTreeSet<String> {
    let after_attribute = |at: usize| {
        let rest = &code[at..];
        words_at(rest, "fn")
            .next()
            .map(|found| word(rest[found + 2..].trim_start()).to_owned())
    };
    code.match_indices("#[test]")
        .filter_map(|(at, _)| after_attribute(at))
        .collect()
}

fn python_tests(text: &str) -> BTreeSet<String> {
    let defined = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("def "));
    defined
        .map(word)
        .filter(|name| name.starts_with("test_"))
        .map(str::to_owned)
        .collect()
}

/// The numbered list under "Invariants": each item must name tests after the word `Tests:`.
fn invariant_problems(architecture: &str, known: &BTreeSet<String>) -> Vec<String> {
    let text = without_code_blocks(architecture);
    let section = text
        .split("\n## ")
        .find(|part| part.starts_with("Invariants"));
    let Some(section) = section else {
        return vec![String::from("ARCHITECTURE.md: no section `Invariants`")];
    };
    let mut problems = Vec::new();
    let items = numbered_items(section);
    if items.is_empty() {
        problems.push(String::from("ARCHITECTURE.md: no invariants"));
    }
    for (number, item) in items {
        let tests = item.split_once("Tests:").map_or("", |(_, tests)| tests);
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            problems.push(format!("ARCHITECTURE.md: invariant {number} names no test"));
        }
        for name in names.iter().filter(|name| !known.contains(**name)) {
            problems.push(format!(
                "ARCHITECTURE.md: invariant {number}: no test `{name}`"
            ));
        }
    }
    problems
}

/// Items of a numbered list with their continuation lines.
fn numbered_items(section: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    for line in section.lines() {
        let number = line
            .split_once(". ")
            .and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number {
            items.push((number, line.to_owned()));
        } else if let Some((_, item)) = items.last_mut() {
            item.push(' ');
            item.push_str(line);
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_keeps_its_own_rules() {
        let problems = problems(&Workspace::find()).unwrap();
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }

    #[test]
    fn an_open_end_needs_the_number_of_its_issue() {
        let mark = MARKS[0];
        assert_eq!(mark_without_issue(&format!("// {mark}: later")), Some(mark));
        assert_eq!(
            mark_without_issue(&format!("// {mark}(#): later")),
            Some(mark)
        );
        assert_eq!(mark_without_issue(&format!("// {mark}(#12): later")), None);
        assert_eq!(mark_without_issue(&format!("let {mark}S = 1;")), None);
    }

    #[test]
    fn a_name_that_says_nothing_is_found_in_files_and_folders() {
        assert!(vague_name(Path::new("crates/a/src/utils.rs")).is_some());
        assert!(vague_name(Path::new("crates/a/src/common/x.rs")).is_some());
        assert!(vague_name(Path::new("crates/a/src/commons.rs")).is_none());
    }

    #[test]
    fn tests_are_found_in_rust_and_python() {
        let code = "#[test]\n#[cfg(unix)]\nfn one() {}\nfn no() {}\nproptest! { #[test] fn two(a in 0..1) {} }";
        assert_eq!(rust_tests(code), ["one", "two"].map(String::from).into());
        let text = "def test_a(server):\n    pass\nclass T:\n    def test_b(self): ...\ndef helper(): ...\n";
        assert_eq!(
            python_tests(text),
            ["test_a", "test_b"].map(String::from).into()
        );
    }

    #[test]
    fn an_invariant_needs_a_test_that_exists() {
        let known = ["a_holds"].map(String::from).into();
        let text = "# T\n\n## Invariants\n\n1. A holds.\n   Tests: `a_holds`\n2. B holds.\n3. C.\n   Tests: `c`\n\n## More\n4. x\n";
        let problems = invariant_problems(text, &known);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("2 names no test") && problems[1].contains("`c`"));
        assert_eq!(invariant_problems("# T\n", &known).len(), 1);
    }
}
