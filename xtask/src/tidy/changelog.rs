//! The changelog has a place for the next change, so that adding a line needs no edit of its structure.

use crate::files::TextFile;
use crate::finding::Finding;

const PATH: &str = "CHANGELOG.md";
const HEADING: &str = "## Unreleased";

/// Checks that the changelog exists and has its heading for unreleased changes.
pub(crate) fn check(files: &[TextFile]) -> Option<Finding> {
    let Some(changelog) = files.iter().find(|file| file.path == PATH) else {
        return Some(Finding::in_file(PATH, "missing"));
    };
    let found = changelog.text.lines().any(|line| line.trim_end() == HEADING);
    (!found).then(|| Finding::in_file(PATH, format!("has no heading `{HEADING}`")))
}

#[cfg(test)]
mod tests {
    use super::{PATH, TextFile};

    fn check(text: Option<&str>, expected: Option<&str>) {
        let files = text.map(|text| TextFile { path: PATH.to_owned(), text: text.to_owned() });
        let finding = super::check(files.as_slice());
        let finding = finding.map(|finding| finding.to_string());
        assert_eq!(finding.as_deref(), expected);
    }

    #[test]
    fn a_changelog_has_a_heading_for_unreleased_changes() {
        check(Some("# Changelog\n\n## Unreleased\n"), None);
        let expected = "CHANGELOG.md: has no heading `## Unreleased`";
        check(Some("# Changelog\n\n## 0.1.0\n\nUnreleased\n"), Some(expected));
    }

    #[test]
    fn a_missing_changelog_is_found() {
        check(None, Some("CHANGELOG.md: missing"));
    }
}
