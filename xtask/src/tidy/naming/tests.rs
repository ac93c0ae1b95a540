//! Both ways for the crates that are named in one module.

use super::check as check_text;

fn check(path: &str, text: &str, expected: &[&str]) {
    let findings = check_text(path, text);
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, expected);
}

fn allowed(path: &str, text: &str) {
    check(path, text, &[]);
}

fn found(text: &str, name: &str, module: &str) {
    let path = "crates/workflow-memo/src/scope.rs";
    let expected = format!("{path}:1: `{name}` is named outside {module} (a module of that name is `crate::{name}`)");
    check(path, text, &[&expected]);
}

#[test]
fn the_queue_is_named_in_its_adapter() {
    allowed("crates/workflow-runtime/src/taquba.rs", "use taquba::Queue;");
    allowed("crates/workflow-runtime/src/taquba/queue.rs", "slatedb::Db::open()");
    for text in [
        "use taquba::Queue;",
        "pub use ::taquba::Queue;",
        "use taquba as queue;",
        "extern crate taquba;",
        "/// Opens a [`taquba::Queue`].",
        "fn open() -> taquba::Queue {",
    ] {
        found(text, "taquba", "crates/workflow-runtime/src/taquba");
    }
    found("let db = slatedb::Db;", "slatedb", "crates/workflow-runtime/src/taquba");
}

#[test]
fn the_encoding_is_named_in_the_stored_records() {
    allowed("crates/workflow-effects/src/stored.rs", "bincode::serde::encode()");
    allowed("crates/workflow-effects/src/stored/run.rs", "bincode::serde::encode()");
    found("use bincode::serde;", "bincode", "crates/workflow-effects/src/stored");
}

#[test]
fn a_module_of_the_same_name_is_no_crate() {
    for text in [
        "mod taquba;",
        "pub use crate::taquba::open;",
        "//! let queue = workflow_runtime::taquba::open(url)?;",
        "#[cfg(feature = \"taquba\")]",
        "// Over taquba, this is one transaction.",
        "use my_taquba::Queue;",
    ] {
        allowed("crates/workflow-runtime/src/lib.rs", text);
    }
}

#[test]
fn tests_and_tools_name_what_they_like() {
    allowed("crates/workflow-runtime/tests/it/main.rs", "use taquba::Queue;");
    allowed("crates/workflow-runtime/examples/own_queue.rs", "use taquba::Queue;");
    allowed("xtask/src/tidy/naming.rs", "use taquba::Queue;");
}
