//! Names of CI's stages: the words of `--only` and of the log.

use std::fmt;
use std::str::FromStr;

/// One stage of CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Tidy,
    Fmt,
    Clippy,
    Tests,
    Docs,
    Features,
    Light,
}

impl Stage {
    /// Every stage in its order: quick ones first, and the ones that share compiled code beside each other.
    pub(crate) const ALL: &[Stage] =
        &[Stage::Tidy, Stage::Fmt, Stage::Clippy, Stage::Tests, Stage::Docs, Stage::Features, Stage::Light];

    fn name(self) -> &'static str {
        match self {
            Stage::Tidy => "tidy",
            Stage::Fmt => "fmt",
            Stage::Clippy => "clippy",
            Stage::Tests => "tests",
            Stage::Docs => "docs",
            Stage::Features => "features",
            Stage::Light => "light",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a word is no stage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParseStageError;

impl fmt::Display for ParseStageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
        write!(f, "not a stage; the stages are {}", names.join(", "))
    }
}

impl std::error::Error for ParseStageError {}

impl FromStr for Stage {
    type Err = ParseStageError;

    fn from_str(name: &str) -> Result<Self, ParseStageError> {
        let stage = Stage::ALL.iter().find(|stage| stage.name() == name);
        stage.copied().ok_or(ParseStageError)
    }
}

#[cfg(test)]
mod tests {
    use super::{ParseStageError, Stage};

    #[test]
    fn a_stage_is_parsed_from_its_name() {
        for &stage in Stage::ALL {
            assert_eq!(stage.to_string().parse(), Ok(stage));
        }
    }

    #[test]
    fn another_word_is_no_stage() {
        assert_eq!("lint".parse::<Stage>(), Err(ParseStageError));
        let message = ParseStageError.to_string();
        assert!(message.ends_with("are tidy, fmt, clippy, tests, docs, features, light"));
    }
}
