//! Every crate is under the workspace's licence, and its texts are in the repository.

use crate::finding::Finding;

const TEXTS: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Finds licence texts that are missing.
pub(crate) fn check_texts(exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let missing = TEXTS.iter().filter(|path| !exists(path));
    missing.map(|path| Finding::in_file(path, "missing")).collect()
}

/// Checks that a package inherits its licence from the workspace. A workspace of its own states one.
pub(crate) fn check_manifest(path: &str, text: &str) -> Option<Finding> {
    let lines: Vec<String> = text.lines().map(|line| line.replace(' ', "")).collect();
    let has = |expected: &str| lines.iter().any(|line| line == expected);
    let inherits = has("license.workspace=true") || has("license={workspace=true}");
    let states = lines.iter().any(|line| line.starts_with("license=\""));
    if has("[workspace]") {
        return (!inherits && !states).then(|| Finding::in_file(path, "states no `license`"));
    }
    (has("[package]") && !inherits).then(|| Finding::in_file(path, "must have `license.workspace = true`"))
}

#[cfg(test)]
mod tests {
    use super::{check_manifest, check_texts};

    fn check(text: &str, expected: Option<&str>) {
        let finding = check_manifest("Cargo.toml", text);
        let finding = finding.map(|finding| finding.to_string());
        assert_eq!(finding.as_deref(), expected);
    }

    #[test]
    fn a_package_inherits_the_licence() {
        check("[package]\nlicense.workspace = true\n", None);
        check("[package]\nlicense = { workspace = true }\n", None);
        let expected = Some("Cargo.toml: must have `license.workspace = true`");
        check("[package]\nname = \"a\"\n", expected);
        check("[package]\nlicense = \"MIT\"\n", expected);
    }

    #[test]
    fn a_workspace_states_the_licence() {
        check("[workspace]\n[workspace.package]\nlicense = \"MIT\"\n", None);
        check("[workspace]\n", Some("Cargo.toml: states no `license`"));
    }

    #[test]
    fn a_missing_licence_text_is_found() {
        assert_eq!(check_texts(&|_| true), []);
        let findings = check_texts(&|path| path == "LICENSE-MIT");
        let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["LICENSE-APACHE: missing"]);
    }
}
