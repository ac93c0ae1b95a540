//! Every limit of staged effects, at its last allowed and its first refused value.

use super::*;

fn check<T: std::fmt::Debug>(result: Result<T>, expected: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(error.is_permanent());
}

#[test]
fn a_later_put_replaces_an_earlier_one() {
    let effects = EffectsHandle::detached();
    let clone = effects.clone();
    effects.put("k", "one").unwrap();
    clone.put("k", "two").unwrap();
    effects.delete("gone").unwrap();
    effects.delete("gone").unwrap();
    let staged = clone.staged();
    assert_eq!(effects.staged(), staged);
    assert_eq!(staged.puts, BTreeMap::from([("k".into(), "two".into())]));
    assert_eq!(staged.deletes, BTreeSet::from(["gone".into()]));
}

#[test]
fn a_put_and_a_delete_of_one_key_conflict() {
    let effects = EffectsHandle::detached();
    effects.put("put", "v").unwrap();
    effects.delete("deleted").unwrap();
    let before = effects.staged();
    check(effects.delete("put"), "key \"put\" is both put and deleted by one step");
    check(effects.put("deleted", "v"), "key \"deleted\" is both put and deleted by one step");
    assert_eq!(effects.staged(), before);
}

#[test]
fn a_key_has_1_to_1024_bytes() {
    let effects = EffectsHandle::detached();
    effects.put("k", "").unwrap();
    effects.put(vec![0; 1024], "v").unwrap();
    effects.delete(vec![255; 1024]).unwrap();
    check(effects.put("", "v"), "a key has 1 to 1024 bytes, not 0");
    check(effects.delete(""), "a key has 1 to 1024 bytes, not 0");
    check(effects.put(vec![0; 1025], "v"), "a key has 1 to 1024 bytes, not 1025");
    check(effects.delete(vec![0; 1025]), "a key has 1 to 1024 bytes, not 1025");
}

#[test]
fn a_key_lies_outside_the_reserved_range() {
    let effects = EffectsHandle::detached();
    for key in ["workflow", "workflow.", "workflow0", "Workflow/x", "x/workflow/"] {
        effects.put(key, "v").unwrap();
    }
    for key in ["workflow/", "workflow/x"] {
        check(effects.put(key, "v"), &format!("key \"{key}\" lies below `workflow/`, which is reserved"));
        check(effects.delete(key), &format!("key \"{key}\" lies below `workflow/`, which is reserved"));
    }
}

#[test]
fn a_value_has_at_most_256_kib() {
    let effects = EffectsHandle::detached();
    effects.put("k", vec![0; 256 * 1024]).unwrap();
    let refused = effects.put("k", vec![0; 256 * 1024 + 1]);
    check(refused, "the value of key \"k\" has 262145 bytes and may have 262144");
    assert_eq!(effects.staged().puts[&b"k"[..]].len(), 256 * 1024);
}

#[test]
fn a_step_stages_at_most_1000_keys() {
    let effects = EffectsHandle::detached();
    for index in 0..500 {
        effects.put(format!("put/{index}"), "v").unwrap();
        effects.delete(format!("delete/{index}")).unwrap();
    }
    check(effects.put("one more", "v"), "a step stages at most 1000 keys");
    check(effects.delete("one more"), "a step stages at most 1000 keys");
    effects.put("put/0", "again").unwrap();
    effects.delete("delete/0").unwrap();
}

#[test]
fn a_step_stages_at_most_4_mib() {
    let effects = EffectsHandle::detached();
    let key = |index: u8| vec![index; 16];
    let value = vec![0; 256 * 1024 - 16];
    for index in 0..16 {
        effects.put(key(index), value.clone()).unwrap();
    }
    check(effects.delete("k"), "a step stages at most 4194304 bytes of keys and values");
    check(effects.put("k", ""), "a step stages at most 4194304 bytes of keys and values");
    effects.put(key(0), value).unwrap();
    effects.put(key(0), "").unwrap();
    effects.delete("k").unwrap();
}

#[test]
fn a_sealed_handle_refuses_and_has_given_everything_away() {
    let (effects, seal) = EffectsHandle::sealable();
    let clone = effects.clone();
    effects.put("k", "v").unwrap();
    assert_eq!(seal.take().puts.len(), 1);
    check(effects.put("k", "v"), "the step has ended and takes no more effects");
    check(clone.delete("k"), "the step has ended and takes no more effects");
    check(clone.put("", ""), "the step has ended and takes no more effects");
    assert!(seal.take().is_empty() && clone.staged().is_empty());
}

#[test]
fn debug_shows_counts() {
    let effects = EffectsHandle::detached();
    effects.put("secret key", "secret").unwrap();
    assert_eq!(format!("{effects:?}"), "EffectsHandle { puts: 1, deletes: 0, bytes: 16, sealed: false }");
}
