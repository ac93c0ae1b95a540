//! Exceptions to lints say why. Clippy asks for it where it runs; this check needs no build and sees code
//! that is compiled out.

use crate::finding::Finding;

/// Finds `allow` and `expect` attributes without a reason.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if is_exception(line) && !attribute(&lines[index..]).contains("reason") {
            findings.push(Finding::at_line(path, index + 1, "an exception to a lint needs `reason = \"…\"`"));
        }
    }
    findings
}

fn is_exception(line: &str) -> bool {
    let line = line.trim_start();
    let starts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    starts.iter().any(|start| line.starts_with(start))
}

/// The text up to the line that closes the attribute.
fn attribute(lines: &[&str]) -> String {
    let last = lines.iter().position(|line| line.contains(")]"));
    let last = last.unwrap_or(lines.len() - 1);
    lines[..=last].join("\n")
}

#[cfg(test)]
mod tests {
    use super::check as check_text;

    fn check(text: &str, expected_lines: &[usize]) {
        let expected =
            expected_lines.iter().map(|line| format!("a.rs:{line}: an exception to a lint needs `reason = \"…\"`"));
        let findings = check_text("a.rs", text);
        let findings = findings.iter().map(ToString::to_string);
        assert_eq!(findings.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn an_exception_with_a_reason_is_allowed() {
        check("#[allow(dead_code, reason = \"x\")]\nfn f() {}", &[]);
        check("#[expect(\n    dead_code,\n    reason = \"x\"\n)]", &[]);
        check("// #[allow(dead_code)] would hide it", &[]);
    }

    #[test]
    fn an_exception_without_a_reason_is_found() {
        check("//! x\n#![allow(dead_code)]", &[2]);
        check("    #[expect(\n    dead_code\n)]\nlet reason = 1;", &[1]);
        check("#[allow(unclosed", &[1]);
    }
}
