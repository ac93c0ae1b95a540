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
        // A document that never became visible counts too: `show` tells how its run failed.
        let known = catalog.paths.iter().filter(|(_, known)| !known.is_forgotten);
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

#[cfg(test)]
mod tests {
    use super::{Catalog, Job, plan};
    use crate::catalog::{Known, Visible};

    fn catalog() -> Catalog {
        let visible = Known { visible: Some(Visible { size: 1, modified_ns: None, hash: None }), ..Known::default() };
        let forgotten = Known { is_forgotten: true, ..Known::default() };
        let paths = [
            ("/gone/a/visible", visible),
            ("/gone/a/failed", Known::default()),
            ("/gone/a/left", Known { is_running: true, ..Known::default() }),
            ("/gone/a/forgotten", forgotten),
            ("/gone/ab", Known::default()),
        ];
        Catalog { paths: paths.map(|(path, known)| (path.to_owned(), known)).into() }
    }

    fn check(paths: &[&str], expected: &[&str]) {
        let paths: Vec<_> = paths.iter().map(Into::into).collect();
        let expected: Vec<_> = expected.iter().map(|&path| Job::Forget(path.to_owned())).collect();
        assert_eq!(plan(&paths, &catalog()).unwrap(), expected);
    }

    #[test]
    fn a_folder_stands_for_all_that_was_in_it_even_if_it_is_gone() {
        let all = ["/gone/a/failed", "/gone/a/left", "/gone/a/visible"];
        check(&["/gone/a"], &all);
        check(&["/gone/a/left", "/gone/a", "/gone/a/failed"], &all);
        check(&["/gone/a/failed"], &["/gone/a/failed"]);
    }

    #[test]
    fn what_is_forgotten_or_was_never_known_is_not_in_the_index() {
        for path in ["/gone/a/forgotten", "/gone/a/b", "/other"] {
            let failure = plan(&[path.into()], &catalog()).unwrap_err();
            assert!(failure.to_string().contains("is not in the index"), "{failure}");
        }
    }
}
