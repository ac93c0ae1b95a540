//! Pins how `cargo metadata` is read.

use super::{Dependency, DependencyKind, Origin, Package, parse};

const METADATA: &str = r#"{"packages": [{
    "name": "runtime",
    "features": {"taquba": ["dep:taquba"], "default": ["taquba"]},
    "dependencies": [
        {"name": "bytes", "kind": null, "req": "^1"},
        {"name": "cc", "kind": "build", "req": "^1"},
        {"name": "testkit", "kind": "dev", "req": "*", "path": "/repo/testkit"}
    ]
}]}"#;

#[test]
fn a_package_has_its_features_and_dependencies() {
    let dependency = |name: &str, kind, requirement: &str, origin| Dependency {
        name: name.to_owned(),
        kind,
        requirement: requirement.to_owned(),
        origin,
    };
    let expected = Package {
        name: "runtime".to_owned(),
        features: vec!["default".to_owned(), "taquba".to_owned()],
        dependencies: vec![
            dependency("bytes", DependencyKind::Normal, "^1", Origin::External),
            dependency("cc", DependencyKind::Build, "^1", Origin::External),
            dependency("testkit", DependencyKind::Dev, "*", Origin::Workspace),
        ],
    };
    assert_eq!(parse(METADATA).unwrap(), [expected]);
}

#[test]
fn an_unknown_shape_is_an_error() {
    let check = |json: &str, expected: &str| {
        let error = parse(json).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check("{}", "`packages` is not an array");
    check(
        r#"{"packages": [{"name": "a", "features": {}, "dependencies": [{"kind": "other"}]}]}"#,
        "unknown kind of dependency `other`",
    );
}
