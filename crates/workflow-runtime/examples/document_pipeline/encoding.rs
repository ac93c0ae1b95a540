//! How the bytes of a file are text: told by a mark at the start, or by what is no UTF-8.

use serde::{Deserialize, Serialize};

/// How characters are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16le")]
    Utf16Le,
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// What is none of the others: every byte is the character of its number.
    #[serde(rename = "latin-1")]
    Latin1,
}

impl Encoding {
    /// The encoding that the first bytes of a file claim. Without a claim it is UTF-8 until a part of the file shows
    /// that it is not.
    pub(crate) fn of_start(start: &[u8]) -> Self {
        match start {
            [0xFF, 0xFE, ..] => Self::Utf16Le,
            [0xFE, 0xFF, ..] => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    /// Whether `part` of a file shows that the file is no text. Characters of UTF-16 may hold a zero byte.
    pub(crate) fn is_refuted_by(self, part: &[u8]) -> bool {
        !self.is_wide() && part.contains(&0)
    }

    /// The encoding of a file in which `part` occurs too.
    pub(crate) fn or_as(self, part: &[u8]) -> Self {
        match self {
            Self::Utf8 if std::str::from_utf8(part).is_err() => Self::Latin1,
            other => other,
        }
    }

    /// The text of `part`; a broken character is replaced by a mark.
    pub(crate) fn decode(self, part: &[u8]) -> String {
        let text = match self {
            Self::Utf8 => String::from_utf8_lossy(part).into_owned(),
            Self::Utf16Le => decode_wide(part, u16::from_le_bytes),
            Self::Utf16Be => decode_wide(part, u16::from_be_bytes),
            Self::Latin1 => part.iter().map(|&byte| char::from(byte)).collect(),
        };
        match text.strip_prefix('\u{feff}') {
            Some(unmarked) => unmarked.to_owned(),
            None => text,
        }
    }

    /// Bytes of `full` that make a part of their own: up to the end of its last line, else of its last word, else of
    /// its last character but one. At least one byte.
    pub(crate) fn cut(self, full: &[u8]) -> usize {
        let cut = match self {
            Self::Utf8 | Self::Latin1 => cut_narrow(full),
            Self::Utf16Le => cut_wide(full, u16::from_le_bytes),
            Self::Utf16Be => cut_wide(full, u16::from_be_bytes),
        };
        if cut == 0 { full.len() } else { cut }
    }

    fn is_wide(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }
}

fn cut_narrow(full: &[u8]) -> usize {
    let after = |is: fn(&u8) -> bool| full.iter().rposition(is).map(|at| at + 1);
    let starts_character = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    after(|&byte| byte == b'\n')
        .or_else(|| after(u8::is_ascii_whitespace))
        .or_else(|| full.iter().rposition(starts_character))
        .unwrap_or(0)
}

fn cut_wide(full: &[u8], unit: fn([u8; 2]) -> u16) -> usize {
    let units =
        |is: fn(u16) -> bool| full.chunks_exact(2).rposition(|pair| is(unit([pair[0], pair[1]]))).map(|at| at * 2);
    let is_space = |unit| unit == u16::from(b' ') || unit == u16::from(b'\t');
    // The second half of a pair of units starts no character.
    let starts_character = |unit| !(0xDC00..0xE000).contains(&unit);
    units(|unit| unit == u16::from(b'\n'))
        .or_else(|| units(is_space))
        .map(|at| at + 2)
        .or_else(|| units(starts_character))
        .unwrap_or(0)
}

fn decode_wide(part: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = part.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::Encoding;

    fn wide(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    fn check(content: &[u8], encoding: Encoding, text: &str) {
        let found = Encoding::of_start(content).or_as(content);
        assert_eq!(found, encoding);
        assert!(!found.is_refuted_by(content));
        assert_eq!(found.decode(content), text);
    }

    #[test]
    fn every_encoding_is_told_and_read() {
        check("Größe".as_bytes(), Encoding::Utf8, "Größe");
        check("\u{feff}marked".as_bytes(), Encoding::Utf8, "marked");
        check(&wide("\u{feff}Größe 東 🦀", u16::to_le_bytes), Encoding::Utf16Le, "Größe 東 🦀");
        check(&wide("\u{feff}Größe 東 🦀", u16::to_be_bytes), Encoding::Utf16Be, "Größe 東 🦀");
        check(b"Gr\xF6\xDFe", Encoding::Latin1, "Größe");
        check(b"", Encoding::Utf8, "");
    }

    #[test]
    fn a_zero_byte_is_no_text() {
        assert!(Encoding::Utf8.is_refuted_by(b"PNG\0"));
        assert!(!Encoding::Utf16Le.is_refuted_by(b"a\0"));
    }

    #[test]
    fn a_part_ends_with_a_line_or_a_word_or_a_character() {
        let cut = |text: &str| Encoding::Utf8.cut(text.as_bytes());
        assert_eq!(cut("one\ntwo three"), 4);
        assert_eq!(cut("two three"), 4);
        assert_eq!(cut("€€"), 3);
        assert_eq!(cut("x"), 1);
        let cut = |text: &str| Encoding::Utf16Be.cut(&wide(text, u16::to_be_bytes));
        assert_eq!(cut("one\ntwo three"), 8);
        assert_eq!(cut("two three"), 8);
        assert_eq!(cut("🦀🦀"), 4);
    }
}
