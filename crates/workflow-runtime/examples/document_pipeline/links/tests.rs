//! Lines and the links in them.

use super::{Kind, MAX_LINK_BYTES, links};

fn check(kind: Kind, text: &str, expected: &[&str]) {
    let found = links(kind, text);
    assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn web_addresses_are_found_in_any_text() {
    check(
        Kind::Plain,
        "see https://a.org/x?y=1#z, (http://b.org) and \"https://c.org/\".",
        &["http://b.org", "https://a.org/x?y=1#z", "https://c.org/"],
    );
}

#[test]
fn an_address_keeps_the_brackets_it_opened() {
    check(
        Kind::Markdown,
        "[a](https://a.org/b_(c)) and (https://d.org/e_(f))",
        &["https://a.org/b_(c)", "https://d.org/e_(f)"],
    );
}

#[test]
fn what_only_looks_like_an_address_is_none() {
    check(Kind::Plain, "https:// xhttps://a.org ftp://b.org ://", &[]);
}

#[test]
fn markdown_links_images_and_definitions_are_found() {
    check(
        Kind::Markdown,
        "[a](one.md \"title\") ![b](<two.png>) [c](#three)\n[label]: four.md\n[x] y](five)",
        &["#three", "five", "four.md", "one.md", "two.png"],
    );
}

#[test]
fn brackets_in_other_files_are_code() {
    check(Kind::Plain, "call[index](argument)", &[]);
}

#[test]
fn a_link_counts_once_and_an_empty_one_never() {
    check(Kind::Markdown, "[a](b) [c](b) [d]() [e]:", &["b"]);
}

#[test]
fn a_target_over_the_limit_is_left_out() {
    let fits = "a".repeat(MAX_LINK_BYTES);
    check(Kind::Markdown, &format!("[x]({fits}) [y]({fits}a)"), &[&fits]);
}
