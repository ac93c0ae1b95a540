//! The programs of the examples, which some tests run as processes of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The program of an example, built if it is missing or older than its sources: `cargo test` builds it along with this
/// test, unless it is asked for this test alone.
pub(crate) fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("tests are built in a folder of their profile");
    let program = profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    if !is_fresh(&program) {
        let name = match profile.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--locked", "-p", "workflow-runtime", "--example", example])
            .args(["--profile", name, "--target-dir"])
            .arg(profile.parent().expect("a profile's folder is inside the target folder"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success(), "{example} does not build");
    }
    program
}

/// Whether `program` is as new as the sources that cargo has listed beside it.
fn is_fresh(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let Ok(listed) = fs::read_to_string(program.with_extension("d")) else { return false };
    let built = changed(program).unwrap_or(SystemTime::UNIX_EPOCH);
    // A blank inside of a path is escaped; such a path is not found, and cargo decides.
    let mut sources = listed.split_whitespace().skip(1);
    sources.all(|source| changed(Path::new(source)).is_ok_and(|changed| changed <= built))
}
