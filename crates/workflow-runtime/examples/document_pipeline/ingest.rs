//! `ingest`: bring the index up to date with files and folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::cli::Options;
use crate::failure::{Failure, USAGE, reason};
use crate::report::Report;
use crate::walk::{Walk, is_vanished, walk};
use crate::work::Job;
use crate::{session, store};

pub(crate) async fn ingest(options: &Options, paths: &[PathBuf]) -> anyhow::Result<()> {
    let report = Arc::new(Report::new(options.style));
    // What is wrong with the paths is said before a store is made.
    let walk = walk(paths, &crate::walk::absolute(&options.store)?).map_err(|(path, error)| {
        let line = format!("cannot read {}: {}; check the path", path.display(), reason(&error));
        Failure::new(USAGE, line)
    })?;
    let store = store::create(&options.store)?;
    for (path, reason) in &walk.failed {
        report.failed(&path.to_string_lossy(), reason);
    }
    session::run(options, &store, &report, |catalog| Ok(plan(&walk, catalog))).await
}

/// Every file that was found; every document that is gone; and every run that was left unfinished, wherever its file
/// is: it goes on anyway.
fn plan(walk: &Walk, catalog: &Catalog) -> Vec<Job> {
    let mut jobs: Vec<Job> = walk.files.iter().cloned().map(Job::Index).collect();
    for (path, known) in &catalog.paths {
        if walk.files.contains(path) {
            continue;
        }
        if known.visible.is_some() && is_vanished(Path::new(path), &walk.roots) {
            jobs.push(Job::Forget(path.clone()));
        } else if known.is_running {
            jobs.push(Job::Finish(path.clone()));
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::{Catalog, Job, Walk, plan};
    use crate::catalog::{Known, Visible};

    fn known(is_running: bool, is_visible: bool) -> Known {
        let visible = Visible { size: 1, modified_ns: None, hash: String::new(), skipped: None };
        Known { generation: 1, is_running, visible: is_visible.then_some(visible) }
    }

    #[test]
    fn a_plan_holds_what_is_there_what_is_gone_and_what_was_left() {
        let walk = Walk {
            roots: vec!["/no/such/folder".into()],
            files: ["/no/such/folder/there".to_owned()].into(),
            failed: Vec::new(),
        };
        let catalog = Catalog {
            paths: [
                ("/no/such/folder/gone", known(false, true)),
                ("/no/such/folder/never-seen", known(false, false)),
                ("/no/such/folder/there", known(true, true)),
                ("/other/left", known(true, false)),
                ("/other/done", known(false, true)),
            ]
            .map(|(path, known)| (path.to_owned(), known))
            .into(),
        };
        let expected = [
            Job::Index("/no/such/folder/there".into()),
            Job::Forget("/no/such/folder/gone".into()),
            Job::Finish("/other/left".into()),
        ];
        assert_eq!(plan(&walk, &catalog), expected);
    }
}
