//! Lints each crate with no feature, each feature alone, and all of them: features only add, in every combination.

use xshell::{Shell, cmd};

use crate::workspace::Package;

/// Lints every combination of every crate that has features.
pub(crate) fn run(shell: &Shell, packages: &[Package]) -> anyhow::Result<()> {
    for package in packages {
        let name = &package.name;
        for features in combinations(&package.features) {
            let features = features.join(",");
            let flags = ["--no-default-features", "--features", &features, "--locked"];
            cmd!(shell, "cargo clippy -p {name} {flags...} -- -D warnings").run()?;
        }
    }
    Ok(())
}

/// None, each alone, all; the workspace's other stages build `default`. Equal sets come once.
fn combinations(features: &[String]) -> Vec<Vec<&str>> {
    if features.is_empty() {
        return Vec::new();
    }
    let own = features.iter().map(String::as_str);
    let own: Vec<&str> = own.filter(|feature| *feature != "default").collect();
    let mut sets = vec![Vec::new()];
    sets.extend(own.iter().map(|feature| vec![*feature]));
    if own.len() > 1 {
        sets.push(own);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::combinations;

    fn check(features: &[&str], expected: &[&[&str]]) {
        let features: Vec<String> = features.iter().map(ToString::to_string).collect();
        assert_eq!(combinations(&features), expected);
    }

    #[test]
    fn a_crate_without_features_is_left_to_the_other_stages() {
        check(&[], &[]);
    }

    #[test]
    fn one_feature_alone_is_all_of_them() {
        check(&["default", "taquba"], &[&[], &["taquba"]]);
    }

    #[test]
    fn several_features_are_built_alone_and_together() {
        check(&["a", "b"], &[&[], &["a"], &["b"], &["a", "b"]]);
    }
}
