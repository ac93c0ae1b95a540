//! A known bug: a patch with a head that says which rule it breaks and which tests notice.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

/// A patch file. Its head has one line `Rule: …`, at least one line `Test: package/target name`, and perhaps one line
/// `Says: …`; a diff against the workspace follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// Where the patch lies.
    pub(crate) path: PathBuf,
    /// The rule that the patch breaks, as a sentence.
    pub(crate) rule: String,
    /// The tests that must fail.
    pub(crate) tests: Vec<TestName>,
    /// What they must say then.
    pub(crate) says: Option<String>,
}

/// A test by its package, its target (`lib` for the unit tests) and its full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestName {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) name: String,
}

impl Mutant {
    pub(crate) fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let (mut rule, mut tests, mut says) = (None, Vec::new(), None);
        for line in text.lines().take_while(|line| !line.starts_with("--- ")) {
            if let Some(said) = line.strip_prefix("Rule: ") {
                rule = Some(said.to_owned());
            }
            if let Some(said) = line.strip_prefix("Says: ") {
                says = Some(said.to_owned());
            }
            if let Some(test) = line.strip_prefix("Test: ") {
                tests.push(test.parse().with_context(|| format!("in {}", path.display()))?);
            }
        }
        let rule = rule.with_context(|| format!("{} has no line `Rule: …`", path.display()))?;
        anyhow::ensure!(!tests.is_empty(), "{} has no line `Test: …`", path.display());
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, path: path.to_owned(), rule, tests, says })
    }
}

/// The tests, each once, in groups that are one binary.
pub(crate) fn by_binary<'a>(tests: &[&'a TestName]) -> Vec<Vec<&'a TestName>> {
    let mut tests = tests.to_vec();
    tests.sort();
    tests.dedup();
    let same_binary = |one: &&TestName, two: &&TestName| (&one.package, &one.target) == (&two.package, &two.target);
    tests.chunk_by(same_binary).map(<[_]>::to_vec).collect()
}

impl FromStr for TestName {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parsed = text.split_once(' ').and_then(|(place, name)| Some((place.split_once('/')?, name)));
        let ((package, target), name) = parsed.context("a test is written as `package/target name`")?;
        Ok(Self { package: package.to_owned(), target: target.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.package, self.target, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Rule: a commit is whole\nTest: runtime/it commits::whole\nTest: runtime/lib a::b\n\n--- a/x\n";

    fn parse(text: &str) -> anyhow::Result<Mutant> {
        Mutant::parse(Path::new("folder/torn-commit.patch"), text)
    }

    #[test]
    fn the_head_of_a_patch_names_rule_and_tests() {
        let mutant = parse(PATCH).unwrap();
        assert_eq!((mutant.name.as_str(), mutant.rule.as_str()), ("torn-commit", "a commit is whole"));
        let tests: Vec<_> = mutant.tests.iter().map(ToString::to_string).collect();
        assert_eq!(tests, ["runtime/it commits::whole", "runtime/lib a::b"]);
        assert_eq!(mutant.says, None);
        assert_eq!(parse(&format!("Says: O3 liveness\n{PATCH}")).unwrap().says.as_deref(), Some("O3 liveness"));
    }

    #[test]
    fn a_patch_without_a_rule_or_a_test_is_refused() {
        assert!(parse(&PATCH.replace("Rule", "Role")).unwrap_err().to_string().contains("Rule"));
        assert!(parse(&PATCH.replace("Test", "Text")).unwrap_err().to_string().contains("Test"));
        assert!(parse(&PATCH.replace("runtime/", "runtime-")).is_err());
        assert!(parse("--- a/x\nRule: too late\nTest: a/b c\n").is_err());
    }

    #[test]
    fn tests_of_one_binary_come_together_and_once() {
        let parsed = ["b/it x", "a/lib y", "b/it w", "a/it z", "b/it x"].map(|test| test.parse().unwrap());
        let tests: Vec<&TestName> = parsed.iter().collect();
        let groups: Vec<Vec<String>> =
            by_binary(&tests).iter().map(|group| group.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(groups, [vec!["a/it z"], vec!["a/lib y"], vec!["b/it w", "b/it x"]]);
    }
}
