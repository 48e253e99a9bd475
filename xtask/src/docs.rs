//! Markdown, read just far enough to check what it points at.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// `text` without its fenced code blocks; the number of lines stays.
pub(crate) fn without_code_blocks(text: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_fence && !inside {
            out.push_str(line);
        }
        inside ^= is_fence;
        out.push('\n');
    }
    out
}

/// What is wrong with the links, the paths and the titles of one page, as `(line, text)`.
pub(crate) fn page_problems(root: &Path, page: &Path) -> io::Result<Vec<(usize, String)>> {
    let text = without_code_blocks(&fs::read_to_string(page)?);
    let mut problems = Vec::new();
    let titles = text.lines().filter(|line| line.starts_with("# ")).count();
    if titles != 1 {
        problems.push((1, format!("a page has one title, this one has {titles}")));
    }
    let folder = page.parent().unwrap_or(root);
    for (number, line) in text.lines().enumerate() {
        for link in links(line) {
            if let Some(problem) = link_problem(page, folder, link)? {
                problems.push((number + 1, problem));
            }
        }
        for path in quoted_paths(line) {
            if !root.join(path).exists() {
                problems.push((number + 1, format!("`{path}` does not exist")));
            }
        }
    }
    Ok(problems)
}

/// Targets of the links `[text](target)` of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
}

/// Paths of the repository that a line quotes as code.
fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 5] = ["crates/", "docs/", "tests/", "xtask/", ".ci/"];
    let code = line.split('`').skip(1).step_by(2);
    code.filter(|text| FOLDERS.iter().any(|folder| text.starts_with(folder)))
        .filter(|text| !text.contains([' ', '*', '<', '{', 'N']))
}

fn link_problem(page: &Path, folder: &Path, link: &str) -> io::Result<Option<String>> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (file, anchor) = link
        .split_once('#')
        .map_or((link, None), |(f, a)| (f, Some(a)));
    let target = if file.is_empty() {
        page.to_path_buf()
    } else {
        folder.join(file)
    };
    if !target.exists() {
        return Ok(Some(format!("the link `{link}` leads nowhere")));
    }
    let Some(anchor) = anchor else {
        return Ok(None);
    };
    let found = anchors(&fs::read_to_string(&target)?).contains(anchor);
    Ok((!found).then(|| format!("the link `{link}` names no heading of its page")))
}

/// Anchors of a page's headings, formed as GitHub does: lower case, spaces to hyphens, the rest
/// of the punctuation dropped.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = without_code_blocks(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c })
            .collect::<String>()
    };
    headings.map(slug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(text: &str) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let page = folder.join(format!("{:x}.md", text.len()));
        fs::create_dir_all(folder.join("docs")).unwrap();
        fs::write(&page, text).unwrap();
        let problems = page_problems(&folder, &page).unwrap();
        fs::remove_file(&page).unwrap();
        problems
            .into_iter()
            .map(|(line, text)| format!("{line}: {text}"))
            .collect()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let text = "# T\n[a](gone.md) [b](https://example.org/x) [c](#a-part)\n## A part\n";
        assert_eq!(problems_of(text), ["2: the link `gone.md` leads nowhere"]);
    }

    #[test]
    fn an_anchor_without_a_heading_is_found() {
        let problems = problems_of("# T\n[a](#parts)\n```\n# parts\n```\n");
        assert_eq!(
            problems,
            ["2: the link `#parts` names no heading of its page"]
        );
    }

    #[test]
    fn a_quoted_path_of_the_repository_must_exist() {
        let problems = problems_of("# T\n`docs/gone.md`, `docs/` and `cargo test`\n");
        assert_eq!(problems, ["2: `docs/gone.md` does not exist"]);
    }

    #[test]
    fn a_second_title_is_found() {
        assert_eq!(
            problems_of("# One\n# Two\n"),
            ["1: a page has one title, this one has 2"]
        );
    }
}
