//! Texts and where they are cut.

use super::{Kind, MAX_BYTES, MAX_LINES, sections};

fn cut(kind: Kind, text: &str) -> Vec<&str> {
    sections(kind, text).into_iter().map(|section| &text[section]).collect()
}

fn check(kind: Kind, text: &str, expected: &[&str]) {
    assert_eq!(cut(kind, text), expected);
}

#[test]
fn a_blank_text_has_no_section() {
    check(Kind::Plain, "", &[]);
    check(Kind::Markdown, "\n  \n\n", &[]);
}

#[test]
fn a_heading_opens_a_section() {
    check(
        Kind::Markdown,
        "before\n# One\ntext\n\n  ###### Six\n#hashtag\n####### seven\n    # code\n",
        &["before\n", "# One\ntext\n\n", "  ###### Six\n#hashtag\n####### seven\n    # code\n"],
    );
}

#[test]
fn headings_mean_nothing_in_other_files() {
    check(Kind::Plain, "# a\n# b\n", &["# a\n# b\n"]);
}

#[test]
fn a_hash_in_a_block_of_code_is_no_heading() {
    for (open, close) in [("```sh", "```"), ("~~~", "~~~~"), ("````", "````")] {
        let code = format!("# One\n{open}\n# comment\n``\n{close}\n");
        check(Kind::Markdown, &format!("{code}# Two\n"), &[&code, "# Two\n"]);
    }
}

#[test]
fn a_shorter_fence_does_not_close_a_longer_one() {
    let text = "````\n```\n# comment\n````\n";
    check(Kind::Markdown, text, &[text]);
}

#[test]
fn lines_are_cut_into_blocks() {
    let text = "line\n".repeat(MAX_LINES * 2 + 1);
    let lines: Vec<_> = cut(Kind::Plain, &text).iter().map(|section| section.lines().count()).collect();
    assert_eq!(lines, [MAX_LINES, MAX_LINES, 1]);
}

#[test]
fn a_heading_starts_the_count_of_lines_again() {
    let text = format!("{}# heading\n{}", "a\n".repeat(MAX_LINES - 1), "b\n".repeat(MAX_LINES - 1));
    assert_eq!(cut(Kind::Markdown, &text).len(), 2);
}

#[test]
fn a_long_line_is_cut_after_a_space_and_nothing_is_lost() {
    let text = "word ".repeat(MAX_BYTES);
    let pieces = cut(Kind::Plain, &text);
    assert!(pieces.iter().all(|piece| piece.len() <= MAX_BYTES && piece.ends_with("word ")));
    assert_eq!(pieces.concat(), text);
}

#[test]
fn a_line_without_a_space_is_cut_between_characters() {
    let text = "€".repeat(MAX_BYTES);
    let pieces = cut(Kind::Plain, &text);
    assert!(pieces.iter().all(|piece| piece.len() <= MAX_BYTES));
    assert_eq!(pieces.len(), 4);
    assert_eq!(pieces.concat(), text);
}
