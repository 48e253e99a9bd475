//! Rust source, read just far enough to apply rules to it.

use std::ops::Range;

/// `text` with comments, strings and character literals blanked out; lines and columns stay.
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some(end) = literal_or_comment(bytes, at) else {
            at += 1;
            continue;
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Multi-byte characters outside literals may not be split by blanking: they are never blanked
    // in part, since every blanked range ends after an ASCII delimiter.
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the comment, string or character literal that begins at `at`.
fn literal_or_comment(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(at + block_comment(rest));
    }
    if rest[0] == b'"' {
        return Some(at + quoted_length(rest, b'"'));
    }
    if rest[0] == b'r'
        && !at
            .checked_sub(1)
            .is_some_and(|before| is_word(bytes[before]))
    {
        return raw_string(rest).map(|length| at + length);
    }
    if rest[0] == b'\'' {
        return character(rest).map(|length| at + length);
    }
    None
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = 2 + hashes;
    let length = rest[body..]
        .windows(end.len())
        .position(|window| window == end.as_slice());
    Some(length.map_or(rest.len(), |length| body + length + end.len()))
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted_length(rest, b'\''));
    }
    let first = std::str::from_utf8(&rest[1..rest.len().min(5)])
        .map_or_else(|error| error.valid_up_to(), |text| text.len());
    let text = std::str::from_utf8(&rest[1..1 + first]).ok()?;
    let length = text.chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `code` (see [`code_only`]) with every item behind `#[cfg(test)]` blanked out.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(found) = out[from..].find("#[cfg(test)]") {
        let begin = from + found;
        let Range { end, .. } = item(&out, begin);
        let blank: String = out[begin..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(begin..end, &blank);
        from = begin;
    }
    out
}

/// The item that begins at `begin`: up to its `;`, or the end of its braces.
fn item(code: &str, begin: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (at, c) in code[begin..].char_indices() {
        let end = begin + at + 1;
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' if depth <= 1 => return begin..end,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return begin..end,
            _ => {}
        }
    }
    begin..code.len()
}

/// The word that begins at the start of `text`, and its length.
pub(crate) fn word(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    &text[..end]
}

/// The line that byte `at` of `text` is on, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where `wanted` stands in `code` as a whole word.
pub(crate) fn words_at<'a>(code: &'a str, wanted: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(wanted)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let bytes = code.as_bytes();
            let before = at
                .checked_sub(1)
                .is_some_and(|before| is_word(bytes[before]));
            let after = bytes
                .get(at + wanted.len())
                .is_some_and(|&byte| is_word(byte));
            !before && !after
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_columns_stay() {
        let text =
            "a(\"x//y\"); // crate::b\nlet c = 'x'; /* a /* b */ */ r#\"crate::\"q\"#; 'a: loop";
        let code = code_only(text);
        assert_eq!(code.len(), text.len());
        assert!(!code.contains("crate"), "{code}");
        assert!(
            code.contains("let c =") && code.contains("'a: loop"),
            "{code}"
        );
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_literal() {
        let code = code_only(r#"f("a\"crate::b", '\'', 'c'); crate::d"#);
        assert_eq!(code.matches("crate").count(), 1, "{code}");
    }

    #[test]
    fn test_modules_are_left_out_and_what_follows_stays() {
        let code = "use a;\n#[cfg(test)]\nmod tests { fn f(a: [u8; 2]) { g(); } }\n#[cfg(test)]\nuse b;\nuse c;";
        let rest = without_tests(code);
        assert!(!rest.contains("tests") && !rest.contains("use b") && rest.contains("use c"));
        assert_eq!(line_of(&rest, rest.find("use c").unwrap()), 6);
    }

    #[test]
    fn words_are_found_whole() {
        let found: Vec<_> = words_at("supers super::a my_super super", "super").collect();
        assert_eq!(found, [7, 25]);
    }
}
