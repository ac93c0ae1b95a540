//! `forget`: take documents out of the index, whether their files are still there or not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::cli::Options;
use crate::failure::{FAILED, Failure};
use crate::report::Report;
use crate::walk::absolute;
use crate::work::Job;
use crate::{session, store};

pub(crate) async fn forget(options: &Options, paths: &[PathBuf]) -> anyhow::Result<()> {
    let store = store::find(&options.store)?;
    let report = Arc::new(Report::new(options.style));
    session::run(options, &store, &report, |catalog| plan(paths, catalog)).await
}

/// Every document of the index that one of `paths` names, or that lies below it.
fn plan(paths: &[PathBuf], catalog: &Catalog) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for path in paths {
        let line = || format!("{} is not in the index; query and show tell what is", path.display());
        let folder = absolute(path).map_err(|_| Failure::new(FAILED, line()))?;
        let known = catalog.paths.iter().filter(|(_, known)| known.visible.is_some() || known.is_running);
        let below = known.filter(|(path, _)| Path::new(path).starts_with(&folder));
        let found: Vec<_> = below.map(|(path, _)| Job::Forget(path.clone())).collect();
        if found.is_empty() {
            return Err(Failure::new(FAILED, line()));
        }
        jobs.extend(found);
    }
    // A file and its folder may both be named.
    jobs.sort();
    jobs.dedup();
    Ok(jobs)
}
