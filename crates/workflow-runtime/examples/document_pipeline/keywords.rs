//! The words of a text that are worth looking for. Documents and queries are read alike.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A word holds this many bytes: a single letter says little, and a longer one is data.
const WORD_BYTES: std::ops::RangeInclusive<usize> = 2..=64;

/// Words that stand in every English text, sorted.
const STOP_WORDS: &[&str] = &[
    "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "being", "below", "between", "both", "but", "by", "can", "could", "did", "do", "does", "doing",
    "down", "during", "each", "few", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here",
    "hers", "him", "his", "how", "if", "in", "into", "is", "it", "its", "just", "may", "me", "more", "most", "my",
    "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "out", "over", "own", "same",
    "she", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "through", "to", "too", "under", "until", "up", "very", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// The words of `text` in lower case, in order and as often as they stand there. A word is a run of letters and digits
/// of any script, with the marks above and below them; it is the same word however a letter and its mark are written.
pub(crate) fn words(text: &str) -> Vec<String> {
    let composed = composed(text);
    composed
        .split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c))
        // A mark belongs to the character before it, and that one is part of no word.
        .map(|word| word.trim_start_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| WORD_BYTES.contains(&word.len()))
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .collect()
}

/// `text` in normalization form C, in which most letters and their marks are one character.
fn composed(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        true => text.into(),
        false => text.nfc().collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{STOP_WORDS, words};

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(text), expected, "{text}");
    }

    #[test]
    fn a_word_is_a_run_of_letters_and_digits_in_lower_case() {
        check("run_memo.put(KEY2)?", &["run", "memo", "put", "key2"]);
        check("Größe, ЖИЗНЬ 東京", &["größe", "жизнь", "東京"]);
    }

    #[test]
    fn a_letter_and_its_mark_are_one_however_they_are_written() {
        check("Cafe\u{301} cafés", &["caf\u{e9}", "caf\u{e9}s"]);
        check("q\u{303}uux \u{301}x-ray", &["q\u{303}uux", "ray"]);
        check("हिन्दी", &["हिन्दी"]);
    }

    #[test]
    fn words_are_given_as_often_as_they_stand_there() {
        check("step by Step", &["step", "step"]);
    }

    #[test]
    fn stop_words_are_left_out_in_any_case() {
        check("The end OF the run", &["end", "run"]);
    }

    #[test]
    fn words_too_short_and_too_long_are_left_out() {
        let (fits, long) = ("a".repeat(64), "a".repeat(65));
        check(&format!("x é {fits} {long}"), &["é", &fits]);
    }

    #[test]
    fn the_stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }
}
