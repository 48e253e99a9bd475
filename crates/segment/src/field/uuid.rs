//! UUIDs as an index keeps them: 17 bytes instead of 36.

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A text that spells a UUID with hyphens and in one case, as the 16 bytes and the case. Two texts of
/// this kind are equal where their keys are: filters compare texts, so the case is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UuidKey {
    bytes: [u8; 16],
    is_upper: bool,
}

impl UuidKey {
    /// The key of `text`; none for other texts, UUIDs in other spellings among them.
    pub(crate) fn of(text: &str) -> Option<Self> {
        if text.len() != Hyphenated::LENGTH {
            return None;
        }
        let uuid = Uuid::try_parse(text).ok()?;
        let mut spelt = [0; Hyphenated::LENGTH];
        let key = |is_upper| Self {
            bytes: uuid.into_bytes(),
            is_upper,
        };
        if uuid.hyphenated().encode_lower(&mut spelt) == text {
            return Some(key(false));
        }
        (uuid.hyphenated().encode_upper(&mut spelt) == text).then(|| key(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_equal_keys_where_they_are_equal() {
        let texts = [
            "550e8400-e29b-41d4-a716-446655440000",
            "550E8400-E29B-41D4-A716-446655440000",
            "550e8400-e29b-41d4-a716-446655440001",
            "12345678-1234-1234-1234-123456789012",
        ];
        for (at, a) in texts.iter().enumerate() {
            for (other, b) in texts.iter().enumerate() {
                let (a, b) = (UuidKey::of(a), UuidKey::of(b));
                assert!(a.is_some() && (a == b) == (at == other));
            }
        }
        for text in [
            "",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-44665544000}",
            "550E8400-e29b-41d4-a716-446655440000",
            "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-a716-44665544000g",
            "no uuid, though as long as one is...",
        ] {
            assert_eq!(UuidKey::of(text), None, "{text}");
        }
    }
}
