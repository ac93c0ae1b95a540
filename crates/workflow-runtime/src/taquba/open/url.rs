//! The stores that URLs name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::taquba::open_url;
use ::url::Url;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;

use crate::{Error, Result};

/// The schemes of buckets, with the feature that each needs and whether it is on.
const BUCKETS: [(&str, &str, bool); 3] = [
    ("s3", "aws", cfg!(feature = "aws")),
    ("gs", "gcp", cfg!(feature = "gcp")),
    ("az", "azure", cfg!(feature = "azure")),
];

/// A store that a URL names.
pub(super) enum Named {
    Memory,
    Directory(PathBuf),
    Bucket,
}

pub(super) fn parse(url: &str) -> Result<Named> {
    let parsed =
        Url::parse(url).map_err(|cause| invalid(url, format!("{cause}; write `file:///path` or `memory:`")))?;
    match parsed.scheme() {
        "memory" if url == "memory:" => Ok(Named::Memory),
        "memory" => Err(invalid(url, "a store in memory has no name: write `memory:`".to_owned())),
        "file" => match parsed.to_file_path() {
            Ok(path) if url.starts_with("file:///") => Ok(Named::Directory(path)),
            _ => Err(invalid(url, "a file URL names an absolute path: `file:///path`".to_owned())),
        },
        scheme => match BUCKETS.iter().find(|bucket| bucket.0 == scheme) {
            Some((_, feature, false)) => Err(Error::MissingFeature { url: url.to_owned(), feature }),
            Some(_) => check_bucket(url, &parsed),
            None => Err(invalid(url, format!("scheme `{scheme}` is none of `file`, `memory`, `s3`, `gs` and `az`"))),
        },
    }
}

/// What else a URL may hold would be overlooked.
fn check_bucket(url: &str, parsed: &Url) -> Result<Named> {
    let is_named = parsed.host_str().is_some_and(|bucket| !bucket.is_empty());
    let has_user = !parsed.username().is_empty() || parsed.password().is_some() || parsed.port().is_some();
    if is_named && !has_user && parsed.query().is_none() && parsed.fragment().is_none() {
        return Ok(Named::Bucket);
    }
    let scheme = parsed.scheme();
    Err(invalid(url, format!("the URL of a bucket is `{scheme}://bucket/prefix`; the environment says the rest")))
}

/// The store in the directory at `path`.
pub(super) fn directory(url: &str, path: &Path) -> Result<Arc<dyn ObjectStore>> {
    let store = LocalFileSystem::new_with_prefix(path).map_err(|cause| invalid(url, cause.to_string()))?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// The store below the prefix of a bucket that answers. The storage engine would ask one that does not again for ever.
pub(super) async fn reachable_bucket(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let store = bucket(url)?;
    store.list_with_delimiter(None).await.map_err(Error::Store)?;
    Ok(store)
}

/// The store below the prefix of a bucket.
fn bucket(url: &str) -> Result<Arc<dyn ObjectStore>> {
    // A variable that is no Unicode is none of a provider's.
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let (store, prefix) = open_url(url, variables).map_err(|cause| match cause {
        ::taquba::Error::InvalidStoreUrl { source, .. } => invalid(url, source.to_string()),
        cause => invalid(url, cause.to_string()),
    })?;
    Ok(if prefix.as_ref().is_empty() { store } else { Arc::new(PrefixStore::new(store, prefix)) })
}

/// The store of a URL that is to be read, if it is there. Whether a bucket holds one, reading tells.
pub(in super::super) async fn existing_store_of(url: &str) -> Result<Arc<dyn ObjectStore>> {
    match parse(url)? {
        Named::Memory => Err(invalid(url, "a store in memory cannot be read from outside".to_owned())),
        Named::Bucket => reachable_bucket(url).await,
        Named::Directory(path) if path.is_dir() => directory(url, &path),
        Named::Directory(_) => Err(Error::NoStore { url: url.to_owned() }),
    }
}

pub(super) fn invalid(url: &str, problem: String) -> Error {
    Error::InvalidUrl { url: url.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, problem: &str) {
        let Err(Error::InvalidUrl { problem: found, .. }) = parse(url) else { panic!("`{url}` is accepted") };
        assert!(found.contains(problem), "{found}");
    }

    #[test]
    fn a_url_that_names_no_store_is_refused() {
        check("", "URL");
        check("/var/lib/app", "URL");
        check("ftp://host/path", "none of `file`, `memory`, `s3`, `gs` and `az`");
        check("file://host/path", "absolute path");
    }

    #[test]
    fn a_bucket_whose_feature_is_off_is_refused_with_the_name_of_the_feature() {
        for (scheme, feature, is_on) in BUCKETS {
            match parse(&format!("{scheme}://bucket/prefix")) {
                Ok(Named::Bucket) => assert!(is_on),
                Err(Error::MissingFeature { feature: told, .. }) => assert!(!is_on && told == feature),
                _ => panic!("`{scheme}` is taken for another store"),
            }
        }
    }

    #[test]
    fn a_url_of_a_bucket_says_nothing_but_its_name_and_a_prefix() {
        for (scheme, _, _) in BUCKETS.iter().filter(|bucket| bucket.2) {
            assert!(matches!(parse(&format!("{scheme}://bucket")), Ok(Named::Bucket)));
            for rest in ["", "/prefix", "user@bucket", "bucket:80", "bucket/prefix?region=x", "bucket#x"] {
                check(&format!("{scheme}://{rest}"), "the environment says the rest");
            }
        }
    }
}
