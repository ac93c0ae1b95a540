//! A copy of the workspace to be broken. It is kept between runs, so that cargo rebuilds only what a patch touches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use xshell::{Shell, cmd};

use super::mutant::Mutant;

/// Below the target folder, which nothing else looks at.
const COPY: &str = "target/mutants/workspace";

pub(crate) struct WorkspaceCopy {
    shell: Shell,
}

impl WorkspaceCopy {
    /// Copies what git knows, or would add.
    pub(crate) fn make(shell: &Shell) -> anyhow::Result<Self> {
        let root = shell.current_dir();
        let copy = root.join(COPY);
        let listed = cmd!(shell, "git ls-files --cached --others --exclude-standard").quiet().read()?;
        let listed: BTreeSet<PathBuf> =
            listed.lines().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect();
        remove_others(&copy, Path::new(""), &listed)?;
        for path in &listed {
            copy_if_changed(&root.join(path), &copy.join(path))?;
        }
        let shell = shell.clone();
        shell.change_dir(&copy);
        Ok(Self { shell })
    }

    /// A shell in the copy.
    pub(crate) fn shell(&self) -> &Shell {
        &self.shell
    }

    pub(crate) fn apply(&self, mutant: &Mutant) -> anyhow::Result<()> {
        self.patch(mutant, &[])
    }

    pub(crate) fn revert(&self, mutant: &Mutant) -> anyhow::Result<()> {
        self.patch(mutant, &["--reverse"])
    }

    /// `git apply` leaves out what lies in an ignored folder of a repository, so the copy may not look like one.
    fn patch(&self, mutant: &Mutant, options: &[&str]) -> anyhow::Result<()> {
        let path = &mutant.path;
        cmd!(self.shell, "git apply {options...} {path}").env("GIT_DIR", "none").quiet().run()?;
        Ok(())
    }
}

/// Fails when the patch does not fit the code as it is.
pub(crate) fn check(shell: &Shell, mutant: &Mutant) -> anyhow::Result<()> {
    let path = &mutant.path;
    cmd!(shell, "git apply --check {path}")
        .env("GIT_DIR", "none")
        .quiet()
        .run()
        .with_context(|| format!("{} does not fit the code: make it anew", path.display()))
}

/// Leaves a file alone that is as it should be: its time tells cargo that there is nothing to do.
fn copy_if_changed(from: &Path, to: &Path) -> anyhow::Result<()> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
    Ok(fs::write(to, content)?)
}

/// Removes files of `folder` in the copy that are not `listed`, but for what cargo builds.
fn remove_others(copy: &Path, folder: &Path, listed: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(copy.join(folder)) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            if !listed.contains(&path) {
                fs::remove_file(entry.path())?;
            }
        } else if entry.file_name() != "target" {
            remove_others(copy, &path, listed)?;
        }
    }
    Ok(())
}
