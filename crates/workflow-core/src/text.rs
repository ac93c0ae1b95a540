//! Reasons and error messages are cut to a bounded length before they are stored.

/// The longest reason or message that is stored, in bytes, the mark included.
pub const MAX_TEXT_LEN: usize = 8 * 1024;

const MARK: &str = "… (cut)";

/// `text`, or its beginning and a mark when it is longer than [`MAX_TEXT_LEN`] bytes. Cuts between characters.
pub fn cut_text(mut text: String) -> String {
    if text.len() > MAX_TEXT_LEN {
        let mut end = MAX_TEXT_LEN - MARK.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_limit_is_kept() {
        let text = "x".repeat(MAX_TEXT_LEN);
        assert_eq!(cut_text(text.clone()), text);
    }

    #[test]
    fn a_longer_text_is_cut_between_characters_and_marked() {
        for fill in ["x", "é", "漢", "🦀"] {
            let cut = cut_text(fill.repeat(MAX_TEXT_LEN + 1));
            assert!(cut.len() <= MAX_TEXT_LEN && cut.len() > MAX_TEXT_LEN - 16);
            assert!(cut.ends_with(MARK));
        }
    }
}
