//! Both ways for headers and lengths.

use super::{check as check_text, production_lines};

const HEADER_MESSAGE: &str = "a.rs:1: must open with `//! …`: what the file holds and why it is apart";

fn check(path: &str, text: &str, expected: &[&str]) {
    let findings = check_text(path, text);
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, expected);
}

fn lines(count: usize) -> String {
    format!("//! x\n{}", "fn f() {}\n".repeat(count - 1))
}

#[test]
fn a_file_opens_with_its_doc() {
    check("a.rs", "//! What it holds.\n", &[]);
    check("lib.rs", "#![doc = include_str!(\"../README.md\")]\n", &[]);
    for text in ["", "use a::b;\n//! late", "//!\n", "/// Item.\n", "\n//! x"] {
        check("a.rs", text, &[HEADER_MESSAGE]);
    }
}

#[test]
fn production_code_has_at_most_500_lines() {
    check("crates/a/src/a.rs", &lines(500), &[]);
    let expected = "crates/a/src/a.rs: has 501 lines of production code; the limit is 500";
    check("crates/a/src/a.rs", &lines(501), &[expected]);
}

#[test]
fn test_code_has_at_most_800_lines() {
    check("crates/a/tests/it/main.rs", &lines(800), &[]);
    let expected = "crates/a/src/a/tests.rs: has 801 lines of test code; the limit is 800";
    check("crates/a/src/a/tests.rs", &lines(801), &[expected]);
}

#[test]
fn unit_tests_do_not_count_as_production_code() {
    let check = |text: &str, expected| assert_eq!(production_lines(text), expected, "{text}");
    check("//! x\nfn f() {}\n", 2);
    check("//! x\n#[cfg(test)]\nmod tests {\n    use a;\n}\n", 1);
    check("//! x\n#[cfg(test)]\nmod tests {\n}\nfn after() {}\n", 2);
    check("//! x\n#[cfg(test)]\nmod tests;\nfn after() {}\n", 2);
    check("//! x\n#[cfg(test)]\n#[path = \"b.rs\"]\nmod tests;\n", 1);
    check("//! x\n#[cfg(test)]\nfn helper() {}\n", 3);
    check("//! x\n#[cfg(test)]", 2);
}
