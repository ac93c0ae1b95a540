//! `ingest`: bring the index up to date with files and folders.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::{self, Catalog};
use crate::cli::Options;
use crate::failure::{Failure, USAGE, reason};
use crate::report::Report;
use crate::walk::{Walk, absolute, is_vanished, walk};
use crate::work::Job;
use crate::{session, store};

pub(crate) async fn ingest(options: &Options, paths: &[PathBuf]) -> anyhow::Result<()> {
    let report = Arc::new(Report::new(options.style));
    // What is wrong with the paths is said before a store is made.
    let walk = match walk(paths, &absolute(&options.store)?) {
        Ok(walk) => walk,
        Err((path, error)) => return Err(refusal(&options.store, &path, &error).await.into()),
    };
    let store = store::create(&options.store)?;
    for (path, reason) in &walk.failed {
        report.failed(&path.to_string_lossy(), reason);
    }
    session::run(options, &store, &report, |catalog| Ok(plan(&walk, catalog))).await
}

/// What is wrong with a path that was named, and what to do about it.
async fn refusal(store: &Path, path: &Path, error: &io::Error) -> Failure {
    let path_shown = path.display();
    // A store that cannot tell is not what was asked about.
    let is_gone = error.kind() == ErrorKind::NotFound && is_known(store, path).await.unwrap_or(false);
    let advice = match is_gone {
        true => format!("`forget {path_shown}` takes what was there out of the index"),
        false => "check the path".to_owned(),
    };
    Failure::new(USAGE, format!("cannot read {path_shown}: {}; {advice}", reason(error)))
}

async fn is_known(store: &Path, path: &Path) -> anyhow::Result<bool> {
    let reader = store::open_beside(&store::find(store)?).await?;
    let known = catalog::holds(&reader.kv(), &absolute(path)?).await;
    reader.close().await?;
    known
}

/// Every file that was found; every document that is gone; and every run that was left unfinished, wherever its file
/// is: it goes on anyway.
fn plan(walk: &Walk, catalog: &Catalog) -> Vec<Job> {
    let mut jobs: Vec<Job> = walk.files.iter().cloned().map(Job::Index).collect();
    for (path, known) in &catalog.paths {
        if walk.files.contains(path) {
            continue;
        }
        if !known.is_forgotten && is_vanished(Path::new(path), &walk.roots) {
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

    fn visible() -> Known {
        Known { visible: Some(Visible { size: 1, modified_ns: None, hash: None }), ..Known::default() }
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
                ("/no/such/folder/forgotten", Known { is_forgotten: true, ..Known::default() }),
                ("/no/such/folder/gone", visible()),
                ("/no/such/folder/gone-unread", Known::default()),
                ("/no/such/folder/there", Known { is_running: true, ..visible() }),
                ("/other/left", Known { is_running: true, ..Known::default() }),
                ("/other/done", visible()),
            ]
            .map(|(path, known)| (path.to_owned(), known))
            .into(),
        };
        let expected = [
            Job::Index("/no/such/folder/there".into()),
            Job::Forget("/no/such/folder/gone".into()),
            Job::Forget("/no/such/folder/gone-unread".into()),
            Job::Finish("/other/left".into()),
        ];
        assert_eq!(plan(&walk, &catalog), expected);
    }
}
