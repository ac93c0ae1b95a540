//! Both ways for links.

use super::check as check_text;

const FILES: &[&str] = &["README.md", "docs", "docs/storage.md", "LICENSE-MIT"];

fn check(path: &str, text: &str, expected: &[&str]) {
    let findings = check_text(path, text, &|path| FILES.contains(&path));
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, expected);
}

#[test]
fn a_link_to_a_file_of_the_repository_resolves() {
    check("README.md", "See [storage](docs/storage.md).", &[]);
    check("README.md", "See [`a` b](./docs/storage.md#keys \"Title\").", &[]);
    check("docs/storage.md", "[front](../README.md), [all](../docs/)", &[]);
    check("README.md", "[MIT]: LICENSE-MIT\n[angle]: <LICENSE-MIT>", &[]);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let expected = "README.md:2: link to `docs/lost.md` leads nowhere";
    check("README.md", "# Title\nSee [x](docs/lost.md).", &[expected]);
    check("README.md", "# Title\n[x]: docs/lost.md", &[expected]);
    let expected = "README.md:1: link to `lost.md` leads nowhere";
    check("README.md", "[a](docs/storage.md) [b](lost.md)", &[expected]);
    check("README.md", "[`code`](lost.md) and an open ` tick", &[expected]);
    check("README.md", "[a]()", &["README.md:1: link to `` leads nowhere"]);
}

#[test]
fn a_link_stays_in_the_repository() {
    let expected = "docs/storage.md:1: link to `../../README.md` leads nowhere";
    check("docs/storage.md", "[x](../../README.md)", &[expected]);
    let expected = "README.md:1: link to `/README.md` leads nowhere";
    check("README.md", "[x](/README.md)", &[expected]);
}

#[test]
fn the_web_anchors_and_code_are_left_alone() {
    check("README.md", "[x](https://example.org/a.md) [y](#limits) [z](mailto:a@example.org)", &[]);
    check("README.md", "`[x](lost.md)` and ``a ` [x](lost.md)``", &[]);
    check("README.md", "```rust\nlet x = a[0](lost);\n```\n", &[]);
    check("README.md", "[^1]: A footnote.\n- [ ] a task: done", &[]);
}
